import { FakeClock } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
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
  specId,
  tokenBucket,
} from '../spec/specs.ts'
import { localLimiter } from './local-limiter.ts'

test('keys that are unused again are forgotten while others arrive', () => {
  const clock = new FakeClock()
  const limiter = localLimiter(fixedWindow({ limit: 1, windowMs: 1000 }), { clock })
  for (let key = 0; key < 1000; key++) limiter.take(`old:${key}`)
  clock.step(1000)
  for (let key = 0; key < 1000; key++) limiter.take(`new:${key}`)
  expect(limiter.size).toBeLessThanOrEqual(1001)
  expect(limiter.counts.evicted).toBe(0)
})

test('a full table drops a nearly unused key, and counts it', () => {
  const clock = new FakeClock()
  const limiter = localLimiter(tokenBucket({ capacity: 10, refill: 1, perMs: 1000 }), { clock, maxKeys: 8 })
  limiter.take('heavy', 10)
  for (let key = 0; key < 50; key++) limiter.take(`light:${key}`, 1)
  expect(limiter.size).toBe(8)
  expect(limiter.counts.evicted).toBe(43)
  expect(limiter.take('heavy').allowed).toBe(false)
})

test('options out of range throw in the call that passes them', () => {
  expect(() => fixedWindow({ limit: 0, windowMs: 1 })).toThrow(/option limit/)
  expect(() => tokenBucket({ capacity: 1, refill: 1 / 3, perMs: 1000 })).toThrow(/1 per 3000 ms/)
  expect(() => tokenBucket({ capacity: 2 ** 50, refill: 1, perMs: 1001 })).toThrow(/2\^52/)
  expect(() => slidingWindow({ limit: 1, windowMs: 10, buckets: 11 })).toThrow(/buckets/)
  expect(() => localLimiter(fixedWindow({ limit: 1, windowMs: 1 }), { maxKeys: 0 })).toThrow(/maxKeys/)
})

test('`all` charges every limit or none', () => {
  const clock = new FakeClock()
  const second = localLimiter(tokenBucket({ capacity: 2, refill: 2, perMs: 1000 }), { clock, name: 'second' })
  const hour = localLimiter(slidingLog({ limit: 3, windowMs: 3_600_000 }), { clock, name: 'hour' })
  const both = all([second, hour])
  expect(both.take('u', 2)).toMatchObject({ allowed: true, violated: [] })
  expect(both.take('u', 2)).toMatchObject({ allowed: false, violated: ['second', 'hour'] })
  clock.step(1000)
  const denied = both.take('u', 2)
  expect(denied).toMatchObject({ allowed: false, violated: ['hour'], retryAfterMs: 3_599_000 })
  expect(second.peek('u').remaining).toBe(2)
  expect(both.take('u').allowed).toBe(true)
})

describe('wait', () => {
  test('serves first come, first served, each when the limit has room', async () => {
    const clock = new FakeClock()
    const limiter = localLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 100 }), { clock, timers: clock })
    const served: string[] = []
    const start = clock.now()
    const waits = ['a', 'b', 'c'].map((name) =>
      limiter.wait('k').then(() => served.push(`${name}@${clock.now() - start}`)),
    )
    await new Promise(setImmediate)
    await clock.advanceAsync(500, 10)
    await Promise.all(waits)
    expect(served).toEqual(['a@0', 'b@100', 'c@200'])
  })

  test('a large cost at the head is not overtaken by small ones behind it', async () => {
    const clock = new FakeClock()
    const limiter = localLimiter(tokenBucket({ capacity: 5, refill: 1, perMs: 100 }), { clock, timers: clock })
    limiter.take('k', 5)
    const served: string[] = []
    const waits = [
      limiter.wait('k', 5).then(() => served.push('large')),
      limiter.wait('k', 1).then(() => served.push('small')),
    ]
    await clock.advanceAsync(1000, 50)
    await Promise.all(waits)
    expect(served).toEqual(['large', 'small'])
  })

  test('is refused at once if its turn comes too late, never comes, or the queue is full', async () => {
    const clock = new FakeClock()
    const options = { clock, timers: clock, maxWaiting: 1 }
    const limiter = localLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 60_000 }), options)
    limiter.take('k')
    await expect(limiter.wait('k', 1, { maxWaitMs: 1000 })).rejects.toMatchObject({
      code: 'FB_LIMIT_WAIT_TOO_LONG',
      retryAfterMs: 60_000,
    })
    await expect(limiter.wait('k', 2)).rejects.toMatchObject({ code: 'FB_LIMIT_WAIT_NEVER' })
    const gone = new AbortController()
    const waiting = limiter.wait('k', 1, { maxWaitMs: 100_000, signal: gone.signal })
    await expect(limiter.wait('k')).rejects.toMatchObject({ code: 'FB_LIMIT_WAIT_FULL' })
    gone.abort(new Error('the caller left'))
    await expect(waiting).rejects.toThrow('the caller left')
    await expect(limiter.wait('k', 1, { signal: gone.signal })).rejects.toThrow('the caller left')
  })

  test('a leaky queue lets calls through one interval apart', async () => {
    const clock = new FakeClock()
    const limiter = localLimiter(leakyQueue({ intervalMs: 50, queue: 10 }), { clock, timers: clock })
    const start = clock.now()
    const left: number[] = []
    const waits = [0, 1, 2].map(() => limiter.wait('k').then(() => left.push(clock.now() - start)))
    await new Promise(setImmediate)
    await clock.advanceAsync(300, 10)
    await Promise.all(waits)
    expect(left).toEqual([0, 50, 100])
  })

  test('a caller that leaves while its call is admitted gives the units back', async () => {
    const clock = new FakeClock()
    const limiter = localLimiter(concurrency({ limit: 1, leaseMs: 100_000 }), { clock, timers: clock })
    const gone = new AbortController()
    const waiting = limiter.wait('k', 1, { signal: gone.signal })
    gone.abort(new Error('left'))
    await expect(waiting).rejects.toThrow('left')
    await clock.advanceAsync(10)
    expect(limiter.peek('k').remaining).toBe(1)
  })
})

describe('a flood of new keys', () => {
  const second = { windowMs: 1000 }
  const specs: LimitSpec[] = [
    fixedWindow({ limit: 3, ...second }),
    fixedWindow({ limit: 3, ...second, anchor: 'firstHit' }),
    slidingWindow({ limit: 3, ...second }),
    slidingWindow({ limit: 3, ...second, mode: 'classic' }),
    slidingCounter({ limit: 3, ...second }),
    slidingLog({ limit: 3, ...second }),
    tokenBucket({ capacity: 3, refill: 3, perMs: 1000 }),
    leakyBucket({ capacity: 3, leak: 3, perMs: 1000 }),
    leakyQueue({ intervalMs: 333, queue: 2 }),
    gcra({ capacity: 3, rate: 3, perMs: 1000 }),
    calendarWindow({ limit: 3, unit: 'hour' }),
    concurrency({ limit: 3, leaseMs: 1000 }),
  ]
  test.each(specs.map((spec) => [specId(spec), spec] as const))(
    'does not free anybody who is denied: %s',
    (_, spec) => {
      const clock = new FakeClock()
      const limiter = localLimiter(spec, { clock, maxKeys: 100 })
      const attackers = Array.from({ length: 40 }, (_, index) => `attacker:${index}`)
      for (const key of attackers) for (let call = 0; call < 4; call++) limiter.take(key)
      for (let index = 0; index < 20_000; index++) {
        if (index % 100 === 0) clock.step(1)
        // New keys with no unit left have not been denied yet.
        for (let call = 0; call < 1 + (index % 3); call++) limiter.take(`new:${index}`)
      }
      const freed = attackers.filter((key) => limiter.take(key).allowed)
      expect(freed).toEqual([])
      expect(limiter.size).toBeLessThanOrEqual(100)
    },
  )

  test('a table full of denied keys drops the one that is admitted again soonest, and counts it', () => {
    const clock = new FakeClock()
    const limiter = localLimiter(slidingLog({ limit: 1, windowMs: 10_000 }), { clock, maxKeys: 8 })
    for (let index = 0; index < 8; index++) {
      limiter.take(`denied:${index}`)
      limiter.take(`denied:${index}`)
      clock.step(100)
    }
    limiter.take('new')
    expect(limiter.counts.evicted).toBe(1)
    const stillDenied = Array.from({ length: 8 }, (_, index) => limiter.peek(`denied:${index}`, 1).allowed)
    expect(stillDenied).toEqual([true, false, false, false, false, false, false, false])
  })

  test('one that is admitted again is an ordinary key again', () => {
    const clock = new FakeClock()
    const limiter = localLimiter(tokenBucket({ capacity: 2, refill: 1, perMs: 1000 }), { clock, maxKeys: 8 })
    for (let call = 0; call < 3; call++) limiter.take('once denied')
    clock.step(1000)
    expect(limiter.take('once denied').allowed).toBe(true)
    clock.step(1900)
    for (let index = 0; index < 20; index++) limiter.take(`new:${index}`)
    expect(limiter.counts.evicted).toBeGreaterThan(0)
    expect(limiter.peek('once denied').remaining).toBe(2)
  })
})
