import { peek, protect, unprotect } from '@firebreak/client'
import { type RedisServer, scale, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AnyClient, dialects } from './libraries.ts'

let server: RedisServer
let hub: TestHub

beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
})
afterAll(async () => {
  await hub.kill()
  await server.stop()
})

const keys = ['hot:1', 'hot:2', 'cold:1']
const key = fc.constantFrom(...keys)
const value = fc.constantFrom('', 'abc', '12', '3.5', 'žluť')
const index = fc.constantFrom('0', '1', '-1', '-2')
// PFCOUNT keeps its result inside the value, so the raw bytes tell who counted: this key is read as a HyperLogLog only.
const counted = fc.constant('hot:3')
const member = fc.constantFrom('a', 'b', 'c')
const score = fc.constantFrom('1', '2.5', '3.3', '-inf', '1e20')

const command = fc.oneof(
  ...[
    fc.tuple(fc.constant('GET'), key),
    fc.tuple(fc.constant('STRLEN'), key),
    fc.tuple(fc.constant('GETRANGE'), key, index, index),
    fc.tuple(fc.constant('BITCOUNT'), key),
    fc.tuple(fc.constant('GETBIT'), key, fc.constantFrom('0', '7')),
    fc.tuple(fc.constant('EXISTS'), key),
    fc.tuple(fc.constant('TYPE'), key),
    fc.tuple(fc.constant('MGET'), key),
    fc.tuple(fc.constant('MGET'), key, key),
    fc.tuple(fc.constant('HGETALL'), key),
    fc.tuple(fc.constant('HGET'), key, member),
    fc.tuple(fc.constant('HMGET'), key, member, member),
    fc.tuple(fc.constant('LRANGE'), key, index, index),
    fc.tuple(fc.constant('LLEN'), key),
    fc.tuple(fc.constant('SMISMEMBER'), key, member, member),
    fc.tuple(fc.constant('SCARD'), key),
    fc.tuple(fc.constant('ZSCORE'), key, member),
    fc.tuple(fc.constant('ZRANGE'), key, index, index, fc.constant('WITHSCORES')),
    fc.tuple(fc.constant('ZRANGEBYSCORE'), key, fc.constant('-inf'), fc.constant('+inf'), fc.constant('WITHSCORES')),
    fc.tuple(fc.constant('XRANGE'), key, fc.constant('-'), fc.constant('+')),
    fc.tuple(fc.constant('PFCOUNT'), counted),
    fc.tuple(fc.constant('GEOPOS'), key, member),
  ].flatMap((read) => [read, read, read]),
  fc.tuple(fc.constant('SET'), key, value),
  fc.tuple(fc.constant('APPEND'), key, value),
  fc.tuple(fc.constant('INCR'), key),
  fc.tuple(fc.constant('DEL'), key),
  fc.tuple(fc.constant('HSET'), key, member, value),
  fc.tuple(fc.constant('RPUSH'), key, value),
  fc.tuple(fc.constant('SADD'), key, member),
  fc.tuple(fc.constant('ZADD'), key, score, member),
  fc.tuple(fc.constant('XADD'), key, fc.constantFrom('1-1', '2-1', '3-1'), fc.constant('f'), value),
  fc.tuple(fc.constant('PFADD'), counted, value),
  fc.tuple(fc.constant('GEOADD'), key, fc.constant('13.361389'), fc.constant('38.115556'), member),
  fc.tuple(fc.constant('RENAME'), key, key),
  fc.constant(['FLUSHALL']),
)

const step = fc.record({
  // `other`: a bare client changes the keys behind the protected client's back.
  kind: fc.constantFrom('call', 'call', 'call', 'method', 'pipeline', 'multi', 'other'),
  commands: fc.array(command as fc.Arbitrary<string[]>, { minLength: 1, maxLength: 4 }),
})

/** What came of a step: replies as they are, errors as their sentences. */
async function run(client: AnyClient, { kind, commands }: { kind: string; commands: string[][] }): Promise<unknown> {
  const settled = (reply: Promise<unknown>) =>
    reply.catch(({ message, replies }: Error & { replies?: unknown[] }) => ({ message, replies }))
  if (kind === 'pipeline') return settled(client.pipeline(commands))
  if (kind === 'multi') return settled(client.multi(commands))
  const replies = commands.map((args) => {
    const [name, key, ...more] = args
    const method = kind === 'method' && more.length === 0 ? client.reads[name!] : undefined
    return settled(method === undefined ? client.call(args) : method(key!))
  })
  return Promise.all(replies)
}

const reads = new Set('GET STRLEN GETRANGE HGETALL HMGET LRANGE SCARD ZRANGE XRANGE GEOPOS PFCOUNT'.split(' '))
const syncKey = 'hot:sync'

describe.each(Object.keys(dialects))('%s', (name) => {
  test('a protected client answers any commands on hot and cold keys as a bare one does', async () => {
    const clusterId = `same ${name}`
    const open = (database: number) => dialects[name]!({ kind: 'standalone', port: server.port, database })
    // The same steps on two databases: FLUSHALL is sent as FLUSHDB.
    const guarded = await open(1)
    const bare = await open(2)
    const intruder = await open(1)
    protect(guarded.raw, { hubs: [hub.url], serviceId: 'shop', redisClusterId: clusterId, tableFile: false })
    hub.heat(clusterId, ['hot:1', 'hot:2', 'hot:3', syncKey])
    await guarded.set('hot:1', 'x')
    await waitFor(async () => {
      await guarded.get('hot:1')
      return peek(guarded.raw, 'hot:1') === 'x'
    })
    let intrusions = 0
    /** The intruder's commands, and waits until the news of them has come: it comes in order. */
    const intrude = async (commands: string[][]) => {
      const expected = await run(bare, { kind: 'call', commands })
      expect(await run(intruder, { kind: 'call', commands })).toEqual(expected)
      const version = String(++intrusions)
      await intruder.set(syncKey, version)
      await bare.set(syncKey, version)
      await waitFor(async () => (await guarded.get(syncKey)) === version, { everyMs: 1 })
    }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        await guarded.call(['FLUSHDB'])
        await bare.call(['FLUSHDB'])
        for (const { kind, commands } of steps) {
          const own = commands.map((words) => (words[0] === 'FLUSHALL' ? ['FLUSHDB'] : words))
          if (kind === 'other') {
            await intrude(own)
            continue
          }
          const expected = await run(bare, { kind, commands: own })
          expect(await run(guarded, { kind, commands: own })).toEqual(expected)
          // What was loaded by the step is read from memory the second time.
          for (const words of own.filter(([command]) => reads.has(command!))) {
            const again = { kind: 'call', commands: [words] }
            expect(await run(guarded, again)).toEqual(await run(bare, again))
          }
        }
      }),
      { numRuns: scale(20, 1000) },
    )
    const effects = () =>
      hub.statuses.flatMap(({ keys: told }) => told).filter((told) => told.redisClusterId === clusterId)
    await waitFor(() => effects().reduce((sum, { localHits }) => sum + localHits, 0) > 20)
    unprotect(guarded.raw)
    for (const client of [guarded, bare, intruder]) client.close()
  })
})
