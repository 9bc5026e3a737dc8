import { FakeClock } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { all } from '../all.ts'
import { concurrency, fixedWindow, leakyQueue, slidingLog, slidingWindow, tokenBucket } from '../spec/specs.ts'
import { localLimiter } from './local-limiter.ts'

test('keys that are unused again are forgotten while others come', () => {
  const clock = new FakeClock()
  const limiter = localLimiter(fixedWindow({ limit: 1, windowMs: 1000 }), { clock })
  for (let key = 0; key < 1000; key++) limiter.take(`old:${key}`)
  clock.step(1000)
  for (let key = 0; key < 1000; key++) limiter.take(`new:${key}`)
  expect(limiter.size).toBeLessThanOrEqual(1001)
  expect(limiter.counts.evicted).toBe(0)
})

test('a full table drops a key near to unused, and counts it', () => {
  const clock = new FakeClock()
  const limiter = localLimiter(tokenBucket({ capacity: 10, refill: 1, perMs: 1000 }), { clock, maxKeys: 8 })
  limiter.take('heavy', 10)
  for (let key = 0; key < 50; key++) limiter.take(`light:${key}`, 1)
  expect(limiter.size).toBe(8)
  expect(limiter.counts.evicted).toBe(43)
  expect(limiter.take('heavy').allowed).toBe(false)
})

test('options out of range throw where the mistake is made', () => {
  expect(() => fixedWindow({ limit: 0, windowMs: 1 })).toThrow(/option limit/)
  expect(() => tokenBucket({ capacity: 1, refill: 1 / 3, perMs: 1000 })).toThrow(/1 per 3000 ms/)
  expect(() => tokenBucket({ capacity: 2 ** 50, refill: 1, perMs: 1001 })).toThrow(/2\^52/)
  expect(() => slidingWindow({ limit: 1, windowMs: 10, buckets: 11 })).toThrow(/buckets/)
  expect(() => localLimiter(fixedWindow({ limit: 1, windowMs: 1 }), { maxKeys: 0 })).toThrow(/maxKeys/)
})

test('all charges every limit or none', () => {
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
  test('serves first come first served, each when the limit has room', async () => {
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

  test('is refused at once where its turn comes too late, never comes, or the line is full', async () => {
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

  test('a leaky queue lets its calls go one interval apart', async () => {
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

  test('one that leaves while its call is admitted gives the units back', async () => {
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
