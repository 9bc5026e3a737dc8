import { openRespClient } from '@firebreak/core/node'
import { encodeCommand, type RespClient } from '@firebreak/core/resp'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readCommand } from '../cache/read-command.ts'
import { encodeDigest, isDigestOf, isWorthDigesting } from './reply-digest.ts'

let server: RedisServer
let client: RespClient

beforeAll(async () => {
  server = await startRedis()
  client = await openRespClient({ port: server.port }, { version: 3 })
})
afterAll(async () => {
  client.close()
  await server.stop()
})

const ask = async (bytes: Uint8Array) => Buffer.from(await client.ask(bytes))
const run = (line: string) => ask(encodeCommand(line.split(' ')))

/** Whether Redis confirms a reply that it gave before a change. */
async function isConfirmed(line: string, change?: string): Promise<boolean> {
  const [name, ...args] = line.split(' ')
  const keyIndex = /^\d+$/.test(args[0]!) ? 1 : 0
  const command = readCommand(name!, args, keyIndex)
  const reply = await ask(command.encode())
  if (change !== undefined) await run(change)
  return isDigestOf(command, reply, await ask(encodeDigest(command)))
}

test('Redis confirms every shape of reply: text, numbers, doubles, nulls, lists, pairs, maps, sets, streams', async () => {
  const fill = [
    'SET text hello',
    'HSET hash f v g 2',
    'RPUSH list a b',
    'SADD set a b c',
    'ZADD sorted 1 a 2.5 b 3.3000000000000003 c inf d',
    'XADD stream 1-1 f v',
    'GEOADD place 13.361389 38.115556 a 15.087269 37.502669 b',
    'PFADD log a b',
  ]
  for (const line of fill) await run(line)
  const lines = [
    'GET text',
    'GET absent',
    'STRLEN text',
    'TYPE text',
    'MGET text',
    'HGETALL hash',
    'HMGET hash f nothing',
    'LRANGE list 0 -1',
    'LPOS list nothing',
    'SMEMBERS set',
    'SISMEMBER set a',
    'ZSCORE sorted c',
    'ZSCORE sorted d',
    'ZRANGE sorted 0 -1 WITHSCORES',
    'ZRANGE sorted 0 -1',
    'ZDIFF 1 sorted WITHSCORES',
    'ZMSCORE sorted a nothing',
    'XRANGE stream - +',
    'GEOPOS place a',
    'GEODIST place a b km',
    'GEOSEARCH place FROMMEMBER a BYRADIUS 500 km ASC WITHDIST WITHCOORD WITHHASH',
    'PFCOUNT log',
    'BITFIELD_RO text GET u8 0',
  ]
  for (const line of lines) expect(await isConfirmed(line), line).toBe(true)
})

test('a change is never confirmed', async () => {
  await run('SET changing old')
  await run('HSET changingHash f 1')
  expect(await isConfirmed('GET changing', 'SET changing new')).toBe(false)
  expect(await isConfirmed('GET changing', 'DEL changing')).toBe(false)
  expect(await isConfirmed('GET changing', 'SET changing 1')).toBe(false)
  expect(await isConfirmed('HGETALL changingHash', 'HSET changingHash f 2')).toBe(false)
  // Another type: the script fails with the server's own error.
  expect(await isConfirmed('GET changing', 'LPUSH changing2 x')).toBe(true)
  await run('DEL changing')
  expect(await isConfirmed('GET changing', 'LPUSH changing x')).toBe(false)
})

test('a number that Lua would round is not confirmed, even if nothing changed', async () => {
  await run('BITFIELD wide SET i64 0 9007199254740993')
  expect(await isConfirmed('BITFIELD_RO wide GET i64 0')).toBe(false)
  await run('BITFIELD wide SET i64 0 9007199254740991')
  expect(await isConfirmed('BITFIELD_RO wide GET i64 0')).toBe(true)
})

test('a short reply gets no digest', () => {
  expect(isWorthDigesting(Buffer.from('$5\r\nhello\r\n'))).toBe(false)
  expect(isWorthDigesting(Buffer.alloc(1000))).toBe(true)
})
