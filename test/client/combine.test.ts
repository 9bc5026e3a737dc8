import { unprotect } from '@firebreak/client'
import type { CombineStrategy } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { FaultProxy, moveSlot, type RedisServer, startCluster, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CounterOperation, isLinearizable } from '../correct/counter-history.ts'
import { Fixture } from './fixture.ts'
import { type AnyClient, libraries, type StandalonePlace } from './libraries.ts'

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})

afterEach(() => fixture.close())

const strategy: CombineStrategy = { strategy: 'Combine', maxCombined: 1024 }

/** Commands of counters that Redis has run. */
async function counted(): Promise<number> {
  const calls = await Promise.all(['incr', 'incrby', 'decr', 'decrby', 'hincrby'].map((name) => fixture.calls(name)))
  return calls.reduce((sum, count) => sum + count, 0)
}

describe.each(Object.entries(libraries))('%s', (_, open) => {
  const opened: AnyClient[] = []
  afterEach(() => {
    for (const client of opened.splice(0)) client.close()
  })

  async function client(more: Partial<StandalonePlace> = {}): Promise<AnyClient> {
    const made = await open({ kind: 'standalone', port: server.port, ...more })
    await fixture.adopt(made.raw)
    return made
  }

  /** Makes a key one whose increments are combined, and waits until they are. */
  async function combine(redis: AnyClient, key: string, outside = key): Promise<void> {
    fixture.hub.heat('main', [outside], { strategy })
    await waitFor(
      async () => {
        const before = await counted()
        await Promise.all(Array.from({ length: 20 }, () => redis.call(['INCRBY', key, '0'])))
        return (await counted()) - before < 15
      },
      { what: 'increments to be combined' },
    )
  }

  test('increments that are on their way at once become few commands, and each caller gets its own value', async () => {
    const redis = await client()
    await combine(redis, 'n')
    const before = await counted()
    const values: unknown[] = []
    for (let round = 0; round < 5; round++)
      values.push(...(await Promise.all(Array.from({ length: 200 }, () => redis.call(['INCR', 'n'])))))
    expect(values.map(Number)).toEqual(Array.from({ length: 1000 }, (_value, index) => index + 1))
    expect((await counted()) - before).toBeLessThan(50)
    expect(await fixture.plain.get('n')).toBe('1000')
  })

  test('what is sent behind an increment sees it, waited for or not', async () => {
    const redis = await client()
    const bare = await open({ kind: 'standalone', port: server.port })
    opened.push(bare)
    await combine(redis, 'n')
    const run = async (on: AnyClient, key: string) => {
      const answers: Promise<unknown>[] = []
      const send = (...words: string[]) => void answers.push(on.call(words).catch((error: Error) => error.message))
      await on.call(['SET', key, '0'])
      for (let round = 0; round < 3; round++) {
        for (let index = 0; index < 5; index++) send('INCR', key)
        send('GET', key)
        send('DECRBY', key, '3')
        send('INCRBY', key, '10')
        send('DEL', key)
        send('INCR', key)
        send('SET', key, 'x')
        send('INCR', key)
        send('INCRBY', key, 'y')
        send('SET', key, '9223372036854775806')
        send('INCR', key)
        send('INCR', key)
        send('INCR', key)
        send('SET', key, '5')
        answers.push(
          on.pipeline([
            ['INCR', key],
            ['GET', key],
            ['INCR', key],
          ]),
        )
        send('INCR', key)
        answers.push(
          on.multi([
            ['INCR', key],
            ['GET', key],
          ]),
        )
        send('INCR', key)
        send('EXPIRE', key, '1000')
        send('INCR', key)
        send('TTL', key)
        send('GET', key)
      }
      return Promise.all(answers)
    }
    expect(await run(redis, 'n')).toEqual(await run(bare, 'm'))
  })

  test('fields of a hash', async () => {
    const redis = await client()
    await combine(redis, 'n')
    await redis.call(['DEL', 'n'])
    await redis.call(['HINCRBY', 'n', 'a', '0'])
    const sums = await Promise.all(
      Array.from({ length: 40 }, (_value, index) => redis.call(['HINCRBY', 'n', index % 2 === 0 ? 'a' : 'b', '2'])),
    )
    expect(sums.map(Number)).toEqual(Array.from({ length: 40 }, (_value, index) => (Math.floor(index / 2) + 1) * 2))
    await expect(redis.call(['INCR', 'n'])).rejects.toThrow(/WRONGTYPE/)
  })

  test('another database has counters of its own', async () => {
    const redis = await client({ database: 3 })
    await combine(redis, 'n')
    await Promise.all(Array.from({ length: 50 }, () => redis.call(['INCR', 'n'])))
    expect(await fixture.plain.get('n')).toBe(null)
    await redis.select(0)
    expect(Number(await redis.call(['INCR', 'n']))).toBe(1)
    await redis.select(3)
    expect(Number(await redis.call(['INCR', 'n']))).toBe(51)
  })

  test('a lost connection: each caller learns of it, and nothing is counted twice', async () => {
    const cut = await FaultProxy.start(server.port)
    fixture.onClose(() => cut.close())
    const redis = await open({ kind: 'standalone', port: cut.port })
    await fixture.adopt(redis.raw)
    await combine(redis, 'n')
    await fixture.plain.set('n', '0')
    const history: CounterOperation[] = []
    let isOver = false
    const writer = async (): Promise<void> => {
      for (let round = 0; round < 40; round++) {
        const began = performance.now()
        // The libraries try again by themselves as long as they are told to; a caller cannot know what that did.
        const value = await redis.call(['INCR', 'n']).then(Number, () => undefined)
        history.push({ amount: 1, began, ended: value === undefined ? undefined : performance.now(), value })
      }
    }
    const cutting = (async () => {
      for (let cuts = 0; cuts < 4 && !isOver; cuts++) {
        const before = history.length
        await waitFor(() => isOver || history.length >= before + 150, { timeoutMs: 30_000 })
        cut.cut()
      }
    })()
    await Promise.all(Array.from({ length: 24 }, writer))
    isOver = true
    await cutting
    const told = history.filter(({ ended }) => ended !== undefined)
    // No two callers were told the same.
    expect(new Set(told.map(({ value }) => value)).size).toBe(told.length)
    expect(Number(await fixture.plain.get('n'))).toBeGreaterThanOrEqual(told.length)
  }, 60_000)
})

test('on a cluster each counter is combined on its own node, while its slot moves', async () => {
  const cluster = await startCluster()
  fixture.onClose(() => cluster.stop())
  const opened: AnyClient[] = []
  for (const name of ['ioredis 6', 'node-redis 6']) {
    const redis = await libraries[name]!({ kind: 'cluster', addresses: cluster.addresses })
    opened.push(redis)
    await fixture.adopt(redis.raw)
  }
  fixture.hub.heat('main', ['a', 'b'], { strategy })
  const slot = keySlot('a')
  const owner = Math.floor(slot / 5461)
  const told = new Map<string, Set<number>>([
    ['a', new Set()],
    ['b', new Set()],
  ])
  for (let round = 0; round < 40; round++) {
    const moving =
      round === 20 ? moveSlot(cluster, slot, cluster.nodes[owner]!, cluster.nodes[(owner + 1) % 3]!) : undefined
    const calls = opened.flatMap((redis) =>
      Array.from({ length: 20 }, async (_, index) => {
        const key = index < 10 ? 'a' : 'b'
        told.get(key)!.add(Number(await redis.call(['INCR', key])))
      }),
    )
    await Promise.all([...calls, moving])
  }
  for (const values of told.values()) expect([values.size, Math.max(...values)]).toEqual([800, 800])
  const stats = await Promise.all(cluster.nodes.map((node) => node.cli('INFO', 'commandstats')))
  const seen = stats.join().matchAll(/cmdstat_(?:incr|incrby):calls=(\d+)/g)
  expect([...seen].reduce((sum, [, calls]) => sum + Number(calls), 0)).toBeLessThan(1000)
}, 60_000)

test('a client that is no longer protected sends what waits', async () => {
  const redis = new Redis(server.port)
  await fixture.adopt(redis)
  fixture.hub.heat('main', ['n'], { strategy })
  await waitFor(async () => {
    const before = await counted()
    await Promise.all(Array.from({ length: 20 }, () => redis.incrby('n', 0)))
    return (await counted()) - before < 15
  })
  const increments = [redis.incr('n'), redis.incr('n')]
  unprotect(redis)
  const read = redis.get('n')
  expect([await Promise.all(increments), await read]).toEqual([[1, 2], '2'])
})

test('without retries of the library, a history with a cut connection is linearizable', async () => {
  const cut = await FaultProxy.start(server.port)
  fixture.onClose(() => cut.close())
  const redis = new Redis({ port: cut.port, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 })
  // Without a listener ioredis prints each lost connection with its stack.
  redis.on('error', () => {})
  await fixture.adopt(redis)
  fixture.hub.heat('main', ['n'], { strategy })
  await waitFor(async () => {
    const before = await counted()
    await Promise.all(Array.from({ length: 20 }, () => redis.incrby('n', 0)))
    return (await counted()) - before < 15
  })
  const history: CounterOperation[] = []
  const writer = async (index: number): Promise<void> => {
    for (let round = 0; round < 40; round++) {
      const amount = (index + round) % 3
      const isRead = (index + round) % 7 === 0
      const began = performance.now()
      const call = isRead ? redis.get('n') : redis.incrby('n', amount)
      const value = await call.then(
        (reply) => Number(reply),
        () => undefined,
      )
      const ended = value === undefined ? undefined : performance.now()
      history.push({ amount: isRead ? 0 : amount, began, ended, value })
      if (history.length % 200 === 100) cut.cut()
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, index) => writer(index)))
  expect(history.some(({ ended }) => ended === undefined)).toBe(true)
  expect(isLinearizable(history)).toBe(true)
}, 60_000)

test('keyPrefix, text numbers and a time limit are kept to', async () => {
  const redis = new Redis({ port: server.port, keyPrefix: 'p:', stringNumbers: true, commandTimeout: 5000 })
  await fixture.adopt(redis)
  fixture.hub.heat('main', ['p:n'], { strategy })
  await waitFor(async () => {
    const before = await counted()
    await Promise.all(Array.from({ length: 20 }, () => redis.incrby('n', 0)))
    return (await counted()) - before < 15
  })
  expect(await Promise.all([redis.incr('n'), redis.incr('n'), redis.incr('n')])).toEqual(['1', '2', '3'])
  expect(await fixture.plain.get('p:n')).toBe('3')
  // Somebody moves it where numbers are no longer exact: text is.
  await fixture.plain.set('p:n', '9007199254740992')
  const large = await Promise.all([redis.incr('n'), redis.incr('n'), redis.incr('n')])
  expect(large).toEqual(['9007199254740993', '9007199254740994', '9007199254740995'])
})
