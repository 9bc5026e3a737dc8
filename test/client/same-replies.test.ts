import { peek, protect, unprotect } from '@firebreak/client'
import { type RedisServer, scale, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import fc from 'fast-check'
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** What the test calls of a client, whichever version it is. */
interface AnyClient {
  call(name: string, ...args: string[]): Promise<unknown>
  pipeline(commands: string[][]): { exec(): Promise<unknown> }
  multi(commands: string[][]): { exec(): Promise<unknown> }
  disconnect(): void
}

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
  kind: fc.constantFrom('call', 'call', 'call', 'method', 'pipeline', 'multi'),
  commands: fc.array(command as fc.Arbitrary<string[]>, { minLength: 1, maxLength: 4 }),
})

/** What came of a step: replies as they are, errors as their sentences. */
async function run(client: AnyClient, { kind, commands }: { kind: string; commands: string[][] }): Promise<unknown> {
  const settled = (reply: Promise<unknown>) => reply.catch((error: Error) => `error ${error.message}`)
  if (kind === 'pipeline' || kind === 'multi') {
    const pipeline = (client as unknown as Record<string, (list: string[][]) => { exec(): Promise<unknown> }>)[kind]!
    const lowered = commands.map(([name, ...args]) => [name!.toLowerCase(), ...args])
    return settled(pipeline.call(client, lowered).exec())
  }
  const replies = commands.map(([name, ...args]) => {
    if (kind === 'call') return settled(client.call(name!, ...args))
    const methods = client as unknown as Record<string, (...values: string[]) => Promise<unknown>>
    return settled(methods[name!.toLowerCase()]!.apply(client, args))
  })
  return Promise.all(replies)
}

describe.each([
  ['ioredis 6', (port: number, db: number) => new Redis6(port, { db })],
  ['ioredis 6 with RESP2', (port: number, db: number) => new Redis6(port, { db, protocol: 2 })],
  ['ioredis 6 with RESP3 replies', (port: number, db: number) => new Redis6(port, { db, replyMapping: 'resp3' })],
  ['ioredis 5', (port: number, db: number) => new Redis5(port, { db })],
] as [string, (port: number, db: number) => AnyClient][])('%s', (name, make) => {
  test('a protected client answers any commands on hot and cold keys as a bare one does', async () => {
    const clusterId = `same ${name}`
    // The same steps on two databases: FLUSHALL is sent as FLUSHDB.
    const guarded = protect(make(server.port, 1), {
      hubs: [hub.url],
      serviceId: 'shop',
      redisClusterId: clusterId,
      tableFile: false,
    })
    const bare = make(server.port, 2)
    hub.heat(clusterId, ['hot:1', 'hot:2', 'hot:3'])
    await guarded.call('SET', 'hot:1', 'x')
    await waitFor(async () => {
      await guarded.call('GET', 'hot:1')
      return peek(guarded, 'hot:1') === 'x'
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        await guarded.call('FLUSHDB')
        await bare.call('FLUSHDB')
        for (const { kind, commands } of steps) {
          const own = commands.map((words) => (words[0] === 'FLUSHALL' ? ['FLUSHDB'] : words))
          const expected = await run(bare, { kind, commands: own })
          expect(await run(guarded, { kind, commands: own })).toEqual(expected)
        }
      }),
      { numRuns: scale(60, 1000) },
    )
    const effects = () =>
      hub.statuses.flatMap(({ keys: told }) => told).filter((told) => told.redisClusterId === clusterId)
    await waitFor(() => effects().reduce((sum, { localHits }) => sum + localHits, 0) > 20)
    unprotect(guarded)
    guarded.disconnect()
    bare.disconnect()
  })
})
