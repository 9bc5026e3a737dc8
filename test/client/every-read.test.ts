import { protect, unprotect } from '@firebreak/client'
import { allCommands } from '@firebreak/core/commands'
import { type RedisServer, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AnyClient, dialects } from './libraries.ts'

let server: RedisServer
let hub: TestHub
let plain: Redis

const values = [
  'SET text 0123456789',
  'HSET hash field value other 2 number 3.25',
  'RPUSH list one two three two',
  'SADD set member',
  'ZADD sorted 1 first 2.5 second 3.3 third inf last',
  'SETBIT bits 11 1',
  'PFADD log one two three',
  'GEOADD place 2.3522 48.8566 paris 4.8357 45.764 lyon',
  'XADD stream 5-1 field value',
  'XADD stream 6-1 field other',
]
const keys = ['text', 'hash', 'list', 'set', 'sorted', 'bits', 'log', 'place', 'stream', 'absent']

/** What each cacheable command is asked; a command that joins the table needs a line here. */
const questions: Readonly<Record<string, readonly string[]>> = {
  GET: ['text', 'absent', 'list'],
  GETRANGE: ['text 2 5', 'absent 0 1'],
  SUBSTR: ['text 1 3'],
  STRLEN: ['text', 'absent'],
  MGET: ['text', 'absent', 'hash'],
  BITCOUNT: ['bits', 'text 0 1'],
  BITFIELD_RO: ['bits GET u4 8 GET i8 0'],
  BITPOS: ['bits 1', 'bits 0'],
  GETBIT: ['bits 11', 'bits 10'],
  PFCOUNT: ['log', 'absent'],
  HEXISTS: ['hash field', 'hash nothing'],
  HGET: ['hash number', 'hash nothing', 'text field'],
  HGETALL: ['hash', 'absent'],
  HKEYS: ['hash'],
  HLEN: ['hash', 'absent'],
  HMGET: ['hash other nothing field'],
  HSTRLEN: ['hash field'],
  HVALS: ['hash'],
  LINDEX: ['list -1', 'list 7'],
  LLEN: ['list'],
  LPOS: ['list two', 'list two COUNT 0', 'list nothing'],
  LRANGE: ['list 1 -1', 'absent 0 -1'],
  SCARD: ['set'],
  SDIFF: ['set'],
  SINTER: ['set'],
  SINTERCARD: ['1 set'],
  SISMEMBER: ['set member', 'set nothing'],
  SMEMBERS: ['set', 'absent'],
  SMISMEMBER: ['set nothing member'],
  SUNION: ['set'],
  EXISTS: ['text', 'absent'],
  TYPE: ['stream', 'absent'],
  ZCARD: ['sorted'],
  ZCOUNT: ['sorted 2 3'],
  ZDIFF: ['1 sorted', '1 sorted WITHSCORES'],
  ZINTER: ['1 sorted', '1 sorted WITHSCORES'],
  ZINTERCARD: ['1 sorted LIMIT 2'],
  ZLEXCOUNT: ['sorted - +'],
  ZMSCORE: ['sorted second nothing'],
  ZRANGE: ['sorted 0 -1', 'sorted 0 -1 WITHSCORES', 'sorted 0 9 BYSCORE LIMIT 1 1', 'sorted 0 -1 REV'],
  ZRANGEBYLEX: ['sorted - +'],
  ZRANGEBYSCORE: ['sorted 2 +inf', 'sorted 2 +inf WITHSCORES'],
  ZRANK: ['sorted third', 'sorted nothing'],
  ZREVRANGE: ['sorted 0 1', 'sorted 0 1 WITHSCORES'],
  ZREVRANGEBYLEX: ['sorted + -'],
  ZREVRANGEBYSCORE: ['sorted +inf 2 WITHSCORES'],
  ZREVRANK: ['sorted first'],
  ZSCORE: ['sorted third', 'sorted last', 'sorted nothing'],
  ZUNION: ['1 sorted WITHSCORES'],
  GEODIST: ['place paris lyon km', 'place paris nowhere'],
  GEOHASH: ['place paris nowhere'],
  GEOPOS: ['place lyon nowhere', 'absent paris'],
  GEOSEARCH: ['place FROMMEMBER paris BYRADIUS 600 km ASC WITHDIST WITHCOORD WITHHASH'],
  GEORADIUS_RO: ['place 3 47 400 km WITHDIST ASC'],
  GEORADIUSBYMEMBER_RO: ['place paris 600 km ASC'],
  XLEN: ['stream'],
  XRANGE: ['stream - +', 'stream 6 + COUNT 1'],
  XREVRANGE: ['stream + -'],
}
const rows = allCommands().filter(({ cacheable, since }) => cacheable && since === undefined)

beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
  plain = new Redis(server.port)
  for (const line of values) {
    const [name, ...args] = line.split(' ')
    await plain.call(name!, ...args)
  }
})
afterAll(async () => {
  plain.disconnect()
  await hub.kill()
  await server.stop()
})

test('every cacheable command is asked', () => {
  expect(rows.map(({ name }) => name).filter((name) => questions[name] === undefined)).toEqual([])
})

/** How often Redis ran a command, by whomever. */
async function callsOf(name: string): Promise<number> {
  const info = await plain.info('commandstats')
  return Number(info.match(new RegExp(`cmdstat_${name.toLowerCase()}:calls=(\\d+)`))?.[1] ?? 0)
}

const outcome = (client: AnyClient, words: readonly string[]) =>
  client.call(words).then(
    (reply) => ({ reply }),
    ({ name, message }: Error) => ({ error: name, message }),
  )

test.each(Object.keys(dialects))('%s gives every reply from memory as the bare client gives it', async (dialect) => {
  const place = { kind: 'standalone', port: server.port } as const
  const [bare, guarded] = [await dialects[dialect]!(place), await dialects[dialect]!(place)]
  const redisClusterId = `every ${dialect}`
  protect(guarded.raw, { hubs: [hub.url], serviceId: 'shop', redisClusterId, tableFile: false, canaryMs: 0 })
  hub.heat(redisClusterId, keys)
  for (const { name } of rows) {
    for (const question of questions[name]!) {
      const words = [name, ...question.split(' ')]
      const expected = await outcome(bare, words)
      const isServed = async () => {
        const before = await callsOf(name)
        expect(await outcome(guarded, words), words.join(' ')).toStrictEqual(expected)
        return (await callsOf(name)) === before
      }
      if ('error' in expected) expect(await isServed(), words.join(' ')).toBe(false)
      else await waitFor(isServed, { everyMs: 1, what: `${words.join(' ')} to be answered from memory` })
    }
  }
  unprotect(guarded.raw)
  for (const client of [bare, guarded]) client.close()
})
