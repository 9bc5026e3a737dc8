import { toRedis } from '@firebreak/redis'
import {
  FaultProxy,
  type RedisCluster,
  type RedisServer,
  startCluster,
  startRedis,
  uncaughtDuring,
  waitFor,
} from '@firebreak/testkit'
import { Cluster, Redis as Ioredis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { all } from '../all.ts'
import type { LimitSpec } from '../spec/spec.ts'
import {
  calendarWindow,
  concurrency,
  fixedWindow,
  gcra,
  leakyBucket,
  leakyQueue,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../spec/specs.ts'
import { type RedisLimiter, type RedisLimiterOptions, redisLimiter } from './redis-limiter.ts'

const patient: RedisLimiterOptions = { deadlineMs: 20_000 }
const everySpec: LimitSpec[] = [
  fixedWindow({ limit: 3, windowMs: 300 }),
  fixedWindow({ limit: 3, windowMs: 300, anchor: 'firstHit' }),
  slidingWindow({ limit: 3, windowMs: 300 }),
  slidingCounter({ limit: 3, windowMs: 300 }),
  slidingLog({ limit: 3, windowMs: 300 }),
  tokenBucket({ capacity: 3, refill: 10, perMs: 1000 }),
  leakyBucket({ capacity: 3, leak: 10, perMs: 1000 }),
  leakyQueue({ intervalMs: 100, queue: 2 }),
  gcra({ capacity: 3, rate: 10, perMs: 1000 }),
  concurrency({ limit: 3, leaseMs: 300 }),
]

let server: RedisServer
let client: Ioredis
beforeAll(async () => {
  server = await startRedis()
  client = new Ioredis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})
beforeEach(async () => {
  await client.flushall()
})

async function scriptCalls(): Promise<number> {
  const stats = await server.cli('INFO', 'commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

const ownError = new Error('the listener’s own')

async function keysWithoutExpiry(redis: Ioredis): Promise<string[]> {
  const keys = await redis.keys('*')
  const expiries = await Promise.all(keys.map((key) => redis.pttl(key)))
  return keys.filter((_, index) => expiries[index] === -1)
}

test('after every call every key has an expiry, and an idle Redis ends empty', async () => {
  const month = calendarWindow({ limit: 3, unit: 'month' })
  for (const spec of [...everySpec, month]) {
    const limiter = redisLimiter(spec, client, { ...patient, rememberDenied: false })
    for (const cost of [1, 0, 2, 5]) {
      await limiter.take('k', cost)
      expect(await keysWithoutExpiry(client)).toEqual([])
    }
    await limiter.refund('k', 1, 'r')
    await limiter.block('k', 100)
    await limiter.block('new', 100)
    await limiter.take('k')
    expect(await client.dbsize()).toBeGreaterThan(0)
    expect(await keysWithoutExpiry(client)).toEqual([])
    await limiter.reset('k')
  }
  // What remains: blocks of 100 ms and states of 300 ms, with a second of grace; marks of refunds stay a minute or more.
  await waitFor(async () => (await client.keys('*')).every((key) => key.includes(':refund:')), {
    what: 'all states to expire',
  })
})

test('a block neither shortens nor forgets the state behind it', async () => {
  for (const spec of [
    fixedWindow({ limit: 3, windowMs: 3_600_000, anchor: 'firstHit' }),
    gcra({ capacity: 3, rate: 1, perMs: 3_600_000 }),
  ]) {
    const limiter = redisLimiter(spec, client, { ...patient, rememberDenied: false })
    await limiter.take('k', 2)
    const [key] = await client.keys('*')
    for (const forMs of [10, 0]) {
      await limiter.block('k', forMs)
      expect(await client.pttl(key!)).toBeGreaterThan(3_000_000)
    }
    expect((await limiter.peek('k')).remaining).toBe(1)
    await client.flushall()
  }
})

test('calls of one turn for one key become one script call; a denied key is answered from memory until it may retry', async () => {
  const limiter = redisLimiter(fixedWindow({ limit: 50, windowMs: 3_600_000 }), client, patient)
  await limiter.take('warm')
  const before = await scriptCalls()
  const answers = await Promise.all(Array.from({ length: 100 }, () => limiter.take('k')))
  expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 100 }, (_, index) => index < 50))
  expect(answers[0]).toMatchObject({ remaining: 49, source: 'redis' })
  expect(await scriptCalls()).toBe(before + 1)
  const again = await limiter.take('k')
  expect(again).toMatchObject({ allowed: false, source: 'denied-memory' })
  expect(again.retryAfterMs).toBeLessThanOrEqual(answers[99]!.retryAfterMs!)
  expect(await scriptCalls()).toBe(before + 1)
  // After changes that this process knows of, Redis is asked again: a refund, a reset.
  await limiter.refund('k', 1)
  expect(await limiter.take('k')).toMatchObject({ allowed: true, source: 'redis' })
  expect((await limiter.take('k')).allowed).toBe(false)
  await limiter.reset('k')
  expect((await limiter.take('k')).allowed).toBe(true)
  expect(limiter.counts).toMatchObject({ allowed: 53, denied: 52 })
})

test('survives SCRIPT FLUSH in the middle of traffic without a wrong count', async () => {
  const limiter = redisLimiter(slidingLog({ limit: 200, windowMs: 3_600_000 }), client, {
    ...patient,
    rememberDenied: false,
  })
  let admitted = 0
  for (let round = 0; round < 30; round++) {
    if (round % 5 === 0) await server.cli('SCRIPT', 'FLUSH')
    const answers = await Promise.all(Array.from({ length: 10 }, () => limiter.take('k')))
    admitted += answers.filter(({ allowed }) => allowed).length
  }
  expect(admitted).toBe(200)
})

test('works through node-redis as well', async () => {
  const nodeRedis = createClient({ url: server.url })
  await nodeRedis.connect()
  const limiter = redisLimiter(gcra({ capacity: 2, rate: 1, perMs: 60_000 }), nodeRedis, patient)
  expect((await limiter.take('k')).allowed).toBe(true)
  expect((await limiter.take('k')).remaining).toBe(0)
  expect((await limiter.take('k')).allowed).toBe(false)
  nodeRedis.destroy()
})

test('retryAfterMs holds on Redis’ own clock: never early, and admitted when it has passed', async () => {
  const limiter = redisLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 200 }), client, {
    ...patient,
    rememberDenied: false,
  })
  await limiter.take('k')
  const denied = await limiter.take('k')
  expect(denied.allowed).toBe(false)
  expect(denied.retryAfterMs).toBeGreaterThan(0)
  expect(denied.retryAfterMs).toBeLessThanOrEqual(200)
  await waitFor(async () => (await limiter.take('k')).allowed, { everyMs: 10, what: 'the refill' })
})

describe('all', () => {
  const second = (options: RedisLimiterOptions, redis = toRedis(client)) => ({
    burst: redisLimiter(tokenBucket({ capacity: 2, refill: 1, perMs: 60_000 }), redis, { ...options, name: 'burst' }),
    daily: redisLimiter(calendarWindow({ limit: 5, unit: 'day', timeZone: 'Europe/Berlin' }), redis, {
      ...options,
      name: 'daily',
    }),
    log: redisLimiter(slidingLog({ limit: 3, windowMs: 60_000 }), redis, { ...options, name: 'log' }),
  })

  test('charges every limit or none, and names every violated one', async () => {
    const { burst, daily, log } = second(patient)
    const together = all([burst, daily, log])
    expect(await together.take('u', 2)).toMatchObject({ allowed: true, violated: [], retryAfterMs: 0 })
    const denied = await together.take('u', 2)
    expect(denied).toMatchObject({ allowed: false, violated: ['burst', 'log'] })
    expect(denied.answers['daily']).toMatchObject({ allowed: true, remaining: 3 })
    expect((await daily.peek('u')).remaining).toBe(3)
    expect((await log.peek('u')).remaining).toBe(1)
    expect((await together.take('u', 9)).retryAfterMs).toBe(null)
    expect(await together.take({ burst: 'x', daily: 'y', log: 'z' })).toMatchObject({ allowed: true })
    expect((await daily.peek('y')).remaining).toBe(4)
  })

  test('admits exactly as much as the tightest limit under concurrent calls', async () => {
    const { daily, log } = second(patient)
    const together = all([daily, log])
    const answers = await Promise.all(Array.from({ length: 50 }, () => together.take('u')))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3)
    expect((await daily.peek('u')).remaining).toBe(2)
  })

  test('refuses keys that cannot be checked atomically', () => {
    const { burst, daily } = second(patient)
    const elsewhere = redisLimiter(fixedWindow({ limit: 1, windowMs: 1 }), client, { name: 'elsewhere' })
    expect(() => all([burst, daily, elsewhere])).toThrow(/share a Redis client/)
    expect(() => all([burst, burst])).toThrow(/different names/)
  })
})

describe('on a cluster of three', () => {
  let cluster: RedisCluster
  let clusterClient: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3 })
    clusterClient = new Cluster(cluster.addresses.map(({ host, port }) => ({ host, port })))
  })
  afterAll(async () => {
    clusterClient.disconnect()
    await cluster.stop()
  })

  test.each(everySpec.map((spec) => [spec.kind, spec] as const))('%s never crosses slots', async (_, spec) => {
    const errors: unknown[] = []
    const limiter = redisLimiter(spec, clusterClient, { ...patient, onError: (error) => errors.push(error) })
    const keys = Array.from({ length: 30 }, (_, index) => `{k${index}}:}${index}{`)
    const answers = await Promise.all(keys.map((key) => limiter.take(key)))
    expect(answers.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true)
    await limiter.refund(keys[0]!, 1, 'a request')
    await limiter.block(keys[1]!, 10_000)
    expect((await limiter.take(keys[1]!)).allowed).toBe(false)
    await limiter.reset(keys[1]!)
    expect((await limiter.take(keys[1]!)).allowed).toBe(true)
    expect(errors).toEqual([])
  })

  test('`all` works for one key, and says what is wrong with keys in different slots', async () => {
    const redis = toRedis(clusterClient)
    const a = redisLimiter(fixedWindow({ limit: 1, windowMs: 60_000 }), redis, { ...patient, name: 'a' })
    const b = redisLimiter(slidingLog({ limit: 2, windowMs: 60_000 }), redis, { ...patient, name: 'b' })
    const together = all([a, b])
    expect((await together.take('u')).allowed).toBe(true)
    expect((await together.take('u')).violated).toEqual(['a'])
    await expect(together.take({ a: 'x', b: 'y' })).rejects.toThrow(/share a slot/)
  })
})

describe('with Redis away', () => {
  const spec = fixedWindow({ limit: 2, windowMs: 3_600_000, anchor: 'firstHit' })
  let proxy: FaultProxy
  let far: Ioredis
  const limiters: Partial<Record<'open' | 'closed' | 'local', RedisLimiter>> = {}
  beforeAll(async () => {
    proxy = await FaultProxy.start(server.port)
    far = new Ioredis(proxy.port, { maxRetriesPerRequest: null })
    far.on('error', () => {})
    await far.ping()
    for (const onUnavailable of ['open', 'closed', 'local'] as const) {
      limiters[onUnavailable] = redisLimiter(spec, far, { onUnavailable, prefix: onUnavailable, deadlineMs: 200 })
      expect((await limiters[onUnavailable].take('before')).source).toBe('redis')
    }
  })
  afterAll(async () => {
    far.disconnect()
    await proxy.close()
  })

  test('each policy answers within its deadline, then at once; after Redis returns nothing that waited is charged', async () => {
    proxy.faults.isBlackHole = true
    const { open, closed, local } = limiters as Record<'open' | 'closed' | 'local', RedisLimiter>
    // Set before their timers, in the same event loop: however late timers are, three deadlines end after one.
    const threeDeadlines = new Promise((resolve) => setTimeout(resolve, 600, 'late'))
    // Many turns, so that many script calls are in flight when the first deadline passes.
    const waiting: Promise<unknown>[] = []
    for (let turn = 0; turn < 20; turn++) {
      waiting.push(open.take('k'), closed.take(`k${turn}`), local.take('k'))
      await new Promise((resolve) => setImmediate(resolve))
    }
    // The limit is one deadline, not twenty.
    expect(await Promise.race([Promise.all(waiting), threeDeadlines])).not.toBe('late')
    await waitFor(async () => {
      for (const limiter of [open, closed, local]) await limiter.take('more')
      return open.isUnavailable && closed.isUnavailable && local.isUnavailable
    })
    expect(await open.take('k')).toMatchObject({ allowed: true, source: 'open' })
    expect(await closed.take('k')).toMatchObject({ allowed: false, source: 'closed' })
    expect(await local.take('fresh')).toMatchObject({ allowed: true, remaining: 1, source: 'local' })
    expect(await local.take('fresh')).toMatchObject({ allowed: true, remaining: 0, source: 'local' })
    expect(await local.take('fresh')).toMatchObject({ allowed: false, source: 'local' })
    expect((await open.take('k', 3)).retryAfterMs).toBe(null)

    proxy.faults.isBlackHole = false
    proxy.cut()
    await far.ping()
    const returned = performance.now()
    await waitFor(() => !open.isUnavailable && !closed.isUnavailable && !local.isUnavailable)
    expect(performance.now() - returned).toBeLessThan(1000)
    expect((await open.take('back')).source).toBe('redis')
  })

  test('listeners that throw leave no caller waiting, and no limit open permanently', async () => {
    const throwing = () => {
      throw ownError
    }
    const thrown = await uncaughtDuring(async () => {
      const options = { prefix: 'throwing', deadlineMs: 200, onError: throwing, onAway: throwing }
      const limiter = redisLimiter(spec, far, options)
      proxy.faults.isBlackHole = true
      expect((await limiter.take('k')).source).toBe('open')
      await waitFor(async () => {
        await limiter.take('k')
        return limiter.isUnavailable
      })
      proxy.faults.isBlackHole = false
      proxy.cut()
      await waitFor(() => !limiter.isUnavailable)
      expect((await limiter.take('back')).source).toBe('redis')
    })
    expect(thrown.length).toBeGreaterThanOrEqual(5)
    expect(new Set(thrown)).toEqual(new Set([ownError]))
  })

  test('calls that sat in the client’s queue while the connection was down are not charged when it is back', async () => {
    const { open } = limiters as Record<'open', RedisLimiter>
    proxy.faults.refusesConnections = true
    proxy.cut()
    await waitFor(() => far.status !== 'ready')
    const answers = await Promise.all([open.take('queued'), open.take('queued')])
    expect(answers.map(({ source }) => source)).toEqual(['open', 'open'])
    await waitFor(async () => {
      await open.take('queued')
      return open.isUnavailable
    })
    proxy.faults.refusesConnections = false
    await waitFor(() => !open.isUnavailable)
    expect(await open.peek('queued')).toMatchObject({ remaining: 2, source: 'redis' })
  })

  test('a charge whose reply was lost is not made again, however soon the client is connected again', async () => {
    const limiter = redisLimiter(spec, far, { prefix: 'lost', deadlineMs: 60_000 })
    const near = redisLimiter(spec, client, { ...patient, prefix: 'lost' })
    expect((await limiter.take('before')).source).toBe('redis')
    proxy.faults.serverDelayMs = 60_000
    const taking = limiter.take('k')
    await waitFor(async () => (await near.peek('k')).remaining === 1)
    proxy.faults.serverDelayMs = 0
    proxy.cut()
    expect((await taking).source).toBe('open')
    // After everything that the client resends on its own.
    await far.ping()
    expect(await near.peek('k')).toMatchObject({ remaining: 1, source: 'redis' })
  })
})

test('wait lets calls pass in order, each when Redis admits it, and refuses at once those that would come too late', async () => {
  const limiter = redisLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 100 }), client, patient)
  const started = performance.now()
  const served: number[] = []
  const waits = [0, 1, 2, 3].map(async (index) => {
    const answer = await limiter.wait('k')
    served.push(index)
    return answer
  })
  const answers = await Promise.all(waits)
  expect(served).toEqual([0, 1, 2, 3])
  expect(answers.every(({ allowed, source }) => allowed && source === 'redis')).toBe(true)
  // Three refills; the first may have begun a millisecond earlier.
  expect(performance.now() - started).toBeGreaterThan(3 * 99)
  const slow = redisLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 3_600_000 }), client, patient)
  await slow.take('k')
  await expect(slow.wait('k', 1, { maxWaitMs: 60_000 })).rejects.toMatchObject({ code: 'FB_LIMIT_WAIT_TOO_LONG' })
  await expect(slow.wait('k', 2)).rejects.toMatchObject({ code: 'FB_LIMIT_WAIT_NEVER' })
})

test('a lease serves units without a call and never charges more than the limit', async () => {
  const spec = fixedWindow({ limit: 100, windowMs: 3_600_000 })
  const leasing = Array.from({ length: 3 }, () =>
    redisLimiter(spec, client, { ...patient, rememberDenied: false, lease: { units: 20, maxMs: 60_000 } }),
  )
  await leasing[0]!.take('warm')
  const before = await scriptCalls()
  let admitted = 0
  for (let call = 0; call < 200; call++) if ((await leasing[call % 3]!.take('k')).allowed) admitted++
  expect(admitted).toBe(100)
  const together = await Promise.all(Array.from({ length: 30 }, () => leasing[0]!.take('other')))
  expect(together.every(({ allowed }) => allowed)).toBe(true)
  expect((await leasing[0]!.peek('other')).remaining).toBeGreaterThanOrEqual(100 - 40)
  // 5 leases, then one exact call for each denied one, and two leases for the other key.
  expect((await scriptCalls()) - before).toBeLessThanOrEqual(5 + 200 + 5)
})

test.each([0, 1])('a crowd that retries at once is admitted exactly up to the limit (awakeMs %s)', async (awakeMs) => {
  const limiter = redisLimiter(fixedWindow({ limit: 3000, windowMs: 3_600_000, anchor: 'firstHit' }), client, {
    ...patient,
    awakeMs,
    rememberDenied: false,
    prefix: `crowd${awakeMs}`,
  })
  const remaining: number[] = []
  let asked = 0
  const caller = async () => {
    while (asked++ < 5000) {
      const answer = await limiter.take('hot')
      if (answer.allowed) remaining.push(answer.remaining)
    }
  }
  await Promise.all(Array.from({ length: 100 }, caller))
  // Each unit was given once, in order.
  expect(remaining).toEqual(Array.from({ length: 3000 }, (_, index) => 2999 - index))
})

test('awakeMs is a number from 0 to 1', () => {
  for (const awakeMs of [-1, 2, Number.NaN]) {
    expect(() => redisLimiter(fixedWindow({ limit: 1, windowMs: 1 }), client, { awakeMs })).toThrow(/awakeMs/)
  }
})

test('`all` takes limiters that share one client', async () => {
  const second = redisLimiter(fixedWindow({ limit: 2, windowMs: 60_000 }), client, { name: 'second', prefix: 'one' })
  const hour = redisLimiter(fixedWindow({ limit: 5, windowMs: 3_600_000 }), client, { name: 'hour', prefix: 'one' })
  const both = all([second, hour])
  expect((await both.take('u', 2)).allowed).toBe(true)
  expect(await both.take('u')).toMatchObject({ allowed: false, violated: ['second'] })
  const other = new Ioredis(server.port)
  const elsewhere = redisLimiter(fixedWindow({ limit: 5, windowMs: 1000 }), other, { name: 'elsewhere' })
  expect(() => all([second, elsewhere])).toThrow(/share a Redis client/)
  other.disconnect()
})

test.each([
  ['a window', fixedWindow({ limit: 5, windowMs: 600_000 })],
  ['holds', concurrency({ limit: 5, leaseMs: 600_000 })],
])('with onUnavailable: local, a refund of %s returns what this process charged, and nothing else', async (_, spec) => {
  const down = await startRedis()
  const own = new Ioredis(down.port, { maxRetriesPerRequest: 0, retryStrategy: () => 20 })
  own.on('error', () => {})
  const limiter = redisLimiter(spec, own, { onUnavailable: 'local', deadlineMs: 2000, breakerFailures: 1 })
  expect(await limiter.take('k', 1, 'on-redis')).toMatchObject({ source: 'redis' })
  await down.stop()
  await waitFor(async () => (await limiter.take('other', 1, 'x')).source === 'local')
  // The charge is on the unreachable Redis: it was not given back, and the id may be used again.
  for (let time = 0; time < 2; time++)
    await expect(limiter.refund('k', 1, 'on-redis')).rejects.toMatchObject({ code: 'FB_LIMIT_UNAVAILABLE' })
  expect(await limiter.take('k', 2, 'here')).toMatchObject({ source: 'local', remaining: 3 })
  expect(await limiter.refund('k', 2, 'here')).toBe(true)
  expect((await limiter.peek('k')).remaining).toBe(5)
  await expect(limiter.refund('k', 1, 'on-redis')).rejects.toMatchObject({ code: 'FB_LIMIT_UNAVAILABLE' })
  own.disconnect()
})

test('a refund distinguishes "already done" from "Redis is unreachable", and so do a block and a reset', async () => {
  const down = await startRedis()
  const own = new Ioredis(down.port, { maxRetriesPerRequest: 0, retryStrategy: () => 20 })
  own.on('error', () => {})
  const limiter = redisLimiter(fixedWindow({ limit: 5, windowMs: 60_000 }), own, { deadlineMs: 2000 })
  await limiter.take('k', 3)
  expect(await limiter.refund('k', 1, 'a')).toBe(true)
  expect(await limiter.refund('k', 1, 'a')).toBe(false)
  await down.stop()
  const unavailable = { code: 'FB_LIMIT_UNAVAILABLE' }
  await expect(limiter.refund('k', 1, 'b')).rejects.toMatchObject(unavailable)
  // A block that did not arrive lets an attacker continue, and a lost reset leaves a customer locked out.
  const local = redisLimiter(fixedWindow({ limit: 5, windowMs: 60_000 }), own, { onUnavailable: 'local' })
  for (const each of [limiter, local]) {
    for (let call = 0; call < 4; call++) {
      await expect(each.block('k', 1000)).rejects.toMatchObject(unavailable)
      await expect(each.reset('k')).rejects.toMatchObject(unavailable)
    }
  }
  await expect(local.block('k', 1000)).rejects.toMatchObject(unavailable)
  expect(await local.take('k')).toMatchObject({ allowed: false, source: 'local' })
  own.disconnect()
})
