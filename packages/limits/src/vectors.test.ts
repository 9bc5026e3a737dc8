import { describe, expect, test } from 'vitest'
import type { Answer } from './answer.ts'
import type { LimitSpec } from './spec/spec.ts'
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
} from './spec/specs.ts'
import { bothEngines } from './testing/engines.ts'

const engines = bothEngines()
const minuteMs = 60_000
const startMs = Date.UTC(2026, 0, 1)

describe.each(['local', 'redis'] as const)('%s', (engine) => {
  function open(spec: LimitSpec) {
    const clock = { at: startMs, now: () => clock.at }
    return { limiter: engines[engine](spec, clock), clock }
  }

  /** How many of `perSecond` evenly spaced calls a second are admitted, second by second. */
  async function admittedEachSecond(spec: LimitSpec, perSecond: number, seconds: number): Promise<number[]> {
    const { limiter, clock } = open(spec)
    const admitted: number[] = []
    for (let second = 0; second < seconds; second++) {
      let count = 0
      for (let call = 0; call < perSecond; call++) {
        clock.at = startMs + second * 1000 + Math.floor((call * 1000) / perSecond)
        if ((await limiter.take('k')).allowed) count++
      }
      admitted.push(count)
    }
    return admitted
  }

  test('a leaky bucket of 10 that drains 1 a second admits 2, 5 and 12 a second as long as it has room', async () => {
    const spec = leakyBucket({ capacity: 10, leak: 1, perMs: 1000 })
    expect(await admittedEachSecond(spec, 2, 12)).toEqual([2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1])
    expect(await admittedEachSecond(spec, 5, 6)).toEqual([5, 5, 2, 1, 1, 1])
    expect(await admittedEachSecond(spec, 12, 4)).toEqual([10, 1, 1, 1])
  })

  test('a token bucket of 10 that fills 5 a second admits 3, 8 and 15 a second: all, then 5', async () => {
    const spec = tokenBucket({ capacity: 10, refill: 5, perMs: 1000 })
    expect(await admittedEachSecond(spec, 3, 6)).toEqual([3, 3, 3, 3, 3, 3])
    const eight = await admittedEachSecond(spec, 8, 8)
    expect(eight.slice(0, 2)).toEqual([8, 8])
    expect(eight.slice(-4)).toEqual([5, 5, 5, 5])
    const fifteen = await admittedEachSecond(spec, 15, 6)
    expect(fifteen[0]).toBe(14)
    expect(fifteen.slice(-4)).toEqual([5, 5, 5, 5])
  })

  test('a fixed window of 30 a minute lets 60 pass around the turn of a minute; a sliding one 30', async () => {
    const admitted: Record<string, number> = {}
    for (const spec of [
      fixedWindow({ limit: 30, windowMs: minuteMs }),
      slidingWindow({ limit: 30, windowMs: minuteMs }),
      slidingLog({ limit: 30, windowMs: minuteMs }),
      slidingCounter({ limit: 30, windowMs: minuteMs }),
    ]) {
      const { limiter, clock } = open(spec)
      let count = 0
      for (const at of [minuteMs - 1000, minuteMs]) {
        clock.at = startMs + at
        for (let call = 0; call < 30; call++) if ((await limiter.take('k')).allowed) count++
      }
      admitted[spec.kind] = count
    }
    expect(admitted).toEqual({ fixedWindow: 60, slidingWindow: 30, slidingLog: 30, slidingCounter: 30 })
  })

  test('3 in 5 s: a fixed window from the first hit lets 5 pass around second 5, a log never more than 3 in any 5 s', async () => {
    const seconds = [0, 4, 4.5, 5, 5.5, 6]
    const passedOf = async (spec: LimitSpec) => {
      const { limiter, clock } = open(spec)
      const passed: number[] = []
      for (const second of seconds) {
        clock.at = startMs + second * 1000
        if ((await limiter.take('k')).allowed) passed.push(second)
      }
      return passed
    }
    expect(await passedOf(fixedWindow({ limit: 3, windowMs: 5000, anchor: 'firstHit' }))).toEqual(seconds)
    expect(await passedOf(slidingLog({ limit: 3, windowMs: 5000 }))).toEqual([0, 4, 4.5, 5])
  })

  type Row = [atMs: number, cost: number, answer: Partial<Answer>]
  const vectors: [string, LimitSpec, Row[]][] = [
    [
      'fixedWindow of the epoch',
      fixedWindow({ limit: 2, windowMs: 1000 }),
      [
        [900, 1, { allowed: true, remaining: 1, resetMs: 100 }],
        [950, 1, { allowed: true, remaining: 0, resetMs: 50 }],
        [999, 1, { allowed: false, remaining: 0, retryAfterMs: 1, resetMs: 1 }],
        [1000, 2, { allowed: true, remaining: 0, resetMs: 1000 }],
        [1001, 3, { allowed: false, retryAfterMs: null }],
      ],
    ],
    [
      'fixedWindow of half a second',
      fixedWindow({ limit: 1, windowMs: 500, anchor: 'firstHit' }),
      [
        [100, 1, { allowed: true, resetMs: 500 }],
        [599, 1, { allowed: false, retryAfterMs: 1 }],
        [600, 1, { allowed: true }],
      ],
    ],
    [
      'fixedWindow of 30 days',
      fixedWindow({ limit: 1, windowMs: 30 * 86_400_000, anchor: 'firstHit' }),
      [
        [0, 1, { allowed: true, remaining: 0 }],
        [1, 1, { allowed: false, retryAfterMs: 30 * 86_400_000 - 1 }],
        [30 * 86_400_000, 1, { allowed: true }],
      ],
    ],
    [
      'slidingWindow, strict',
      slidingWindow({ limit: 2, windowMs: 1000, buckets: 10 }),
      [
        [50, 2, { allowed: true, remaining: 0, resetMs: 1050 }],
        [1050, 1, { allowed: false, retryAfterMs: 50 }],
        [1099, 1, { allowed: false, retryAfterMs: 1 }],
        [1100, 1, { allowed: true, remaining: 1 }],
      ],
    ],
    [
      'slidingWindow, classic',
      slidingWindow({ limit: 2, windowMs: 1000, buckets: 10, mode: 'classic' }),
      [
        [50, 2, { allowed: true, resetMs: 950 }],
        [999, 1, { allowed: false, retryAfterMs: 1 }],
        [1000, 1, { allowed: true }],
      ],
    ],
    [
      'slidingCounter',
      slidingCounter({ limit: 10, windowMs: 1000 }),
      [
        [500, 10, { allowed: true, remaining: 0, resetMs: 1500 }],
        [1000, 1, { allowed: false, retryAfterMs: 100 }],
        [1100, 1, { allowed: true, remaining: 0 }],
        [1500, 5, { allowed: false, remaining: 4, retryAfterMs: 100 }],
        [1500, 4, { allowed: true, remaining: 0 }],
      ],
    ],
    [
      'slidingLog',
      slidingLog({ limit: 3, windowMs: 1000 }),
      [
        [0, 2, { allowed: true, remaining: 1, resetMs: 1000 }],
        [400, 1, { allowed: true, remaining: 0 }],
        [900, 3, { allowed: false, retryAfterMs: 500 }],
        [999, 1, { allowed: false, retryAfterMs: 1 }],
        [1000, 2, { allowed: true, remaining: 0 }],
      ],
    ],
    [
      'tokenBucket of a third a second',
      tokenBucket({ capacity: 1, refill: 1, perMs: 3000 }),
      [
        [0, 1, { allowed: true, remaining: 0, resetMs: 3000 }],
        [2999, 1, { allowed: false, retryAfterMs: 1 }],
        [3000, 1, { allowed: true }],
        [3000, 0, { allowed: true, remaining: 0, retryAfterMs: 0, resetMs: 3000 }],
      ],
    ],
    [
      'leakyBucket',
      leakyBucket({ capacity: 2, leak: 1, perMs: 1000 }),
      [
        [0, 1, { allowed: true, remaining: 1, resetMs: 1000 }],
        [500, 1, { allowed: true, remaining: 0, resetMs: 1500 }],
        [600, 1, { allowed: false, retryAfterMs: 400 }],
        [1000, 1, { allowed: true }],
      ],
    ],
    [
      'leakyQueue',
      leakyQueue({ intervalMs: 100, queue: 2 }),
      [
        [0, 1, { allowed: true, delayMs: 0, remaining: 2 }],
        [0, 1, { allowed: true, delayMs: 100, remaining: 1 }],
        [50, 1, { allowed: true, delayMs: 150, remaining: 0 }],
        [50, 1, { allowed: false, delayMs: 0, retryAfterMs: 50 }],
        [100, 1, { allowed: true, delayMs: 200 }],
      ],
    ],
    [
      'gcra',
      gcra({ capacity: 2, rate: 3, perMs: 1000 }),
      [
        [0, 2, { allowed: true, remaining: 0, resetMs: 667 }],
        [333, 1, { allowed: false, retryAfterMs: 1 }],
        [334, 1, { allowed: true, remaining: 0 }],
      ],
    ],
    [
      'calendarWindow of a day in Shanghai, which begins at 16:00 UTC',
      calendarWindow({ limit: 1, unit: 'day', timeZone: 'Asia/Shanghai' }),
      [
        [15 * 3_600_000, 1, { allowed: true, resetMs: 3_600_000 }],
        [16 * 3_600_000 - 1, 1, { allowed: false, retryAfterMs: 1 }],
        [16 * 3_600_000, 1, { allowed: true, resetMs: 86_400_000 }],
      ],
    ],
    [
      'concurrency',
      concurrency({ limit: 2, leaseMs: 1000 }),
      [
        [0, 1, { allowed: true, remaining: 1 }],
        [100, 1, { allowed: true, remaining: 0 }],
        [200, 1, { allowed: false, retryAfterMs: 800 }],
        [999, 1, { allowed: false, retryAfterMs: 1 }],
        [1000, 1, { allowed: true, remaining: 0 }],
      ],
    ],
  ]

  test.each(vectors)('%s gives the exact sequence', async (_, spec, rows) => {
    const { limiter, clock } = open(spec)
    for (const [atMs, cost, answer] of rows) {
      clock.at = startMs + atMs
      expect({ atMs, cost, ...(await limiter.take('k', cost)) }).toMatchObject({ atMs, cost, ...answer })
    }
  })

  test.each(vectors)('%s: a denied call consumes nothing, keys are separate, reset forgets', async (_, spec, rows) => {
    const { limiter } = open(spec)
    const used = rows[0]![1]
    await limiter.take('a', used)
    const before = await limiter.peek('a')
    expect((await limiter.take('a', 1000)).retryAfterMs).toBe(null)
    expect(await limiter.peek('a')).toEqual(before)
    expect((await limiter.peek('b')).remaining).toBe(before.remaining + used)
    await limiter.reset('a')
    expect(await limiter.peek('a')).toMatchObject({ remaining: before.remaining + used, resetMs: 0 })
  })

  test.each(vectors)('%s: a block denies until it ends, and charges nothing', async (_, spec) => {
    const { limiter, clock } = open(spec)
    await limiter.take('k', 1)
    await limiter.block('k', 400)
    expect(await limiter.take('k', 1)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 400 })
    clock.at += 399
    expect(await limiter.take('k', 1)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    expect((await limiter.take('k', 1000)).retryAfterMs).toBe(null)
    // A clock that steps back by an hour makes the block no longer than it was.
    clock.at -= 3_600_000
    expect((await limiter.peek('k')).retryAfterMs).toBeLessThanOrEqual(400)
    clock.at += 400
    expect((await limiter.take('k', 0)).allowed).toBe(true)
    // A block that is over stays over when the clock steps back.
    clock.at -= 200
    expect((await limiter.take('k', 0)).allowed).toBe(true)
    await limiter.block('k', 1000)
    await limiter.block('k', 0)
    expect((await limiter.take('k', 0)).allowed).toBe(true)
  })

  test.each(vectors.filter(([name]) => name !== 'concurrency'))(
    '%s: a refund gives units back once per request',
    async (_, spec, rows) => {
      const { limiter } = open(spec)
      const fresh = await limiter.peek('k')
      await limiter.take('k', rows[0]![1])
      expect(await limiter.refund('k', rows[0]![1], 'request 1')).toBe(true)
      expect((await limiter.peek('k')).remaining).toBe(fresh.remaining)
      await limiter.take('k', 1)
      expect(await limiter.refund('k', 1, 'request 1')).toBe(false)
      expect((await limiter.peek('k')).remaining).toBe(fresh.remaining - 1)
      await limiter.refund('k', 1000)
      expect((await limiter.peek('k')).remaining).toBe(fresh.remaining)
    },
  )

  test('a concurrency slot is given back by its request; a late refund gives back nobody else’s', async () => {
    const { limiter, clock } = open(concurrency({ limit: 1, leaseMs: 1000 }))
    expect((await limiter.take('k', 1, 'a')).allowed).toBe(true)
    await limiter.refund('k', 1, 'b')
    expect((await limiter.peek('k')).remaining).toBe(0)
    await limiter.refund('k', 1, 'a')
    expect((await limiter.peek('k')).remaining).toBe(1)
    // The same name may be used again.
    expect((await limiter.take('k', 1, 'a')).allowed).toBe(true)
    await limiter.refund('k', 1, 'a')
    expect((await limiter.peek('k')).remaining).toBe(1)
    await limiter.take('k', 1, 'c')
    clock.at += 1000
    await limiter.take('k', 1, 'd')
    await limiter.refund('k', 1, 'c')
    expect((await limiter.peek('k')).remaining).toBe(0)
  })

  test('costs that are negative, fractional or not a number throw', async () => {
    const { limiter } = open(fixedWindow({ limit: 2, windowMs: 1000 }))
    for (const cost of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '2' as never]) {
      await expect(async () => limiter.take('k', cost)).rejects.toThrow(/whole number, 0 or more/)
      await expect(async () => limiter.refund('k', cost)).rejects.toThrow(/whole number, 0 or more/)
    }
  })

  test('strict never admits more than the limit in any window, classic does', async () => {
    const worstOf = async (mode: 'strict' | 'classic') => {
      const { limiter, clock } = open(slidingWindow({ limit: 10, windowMs: 1000, buckets: 4, mode }))
      const times: number[] = []
      for (const burstAt of [240, 1000, 1100, 1250, 1300, 2010, 2270]) {
        clock.at = startMs + burstAt
        for (let call = 0; call < 10; call++) if ((await limiter.take('k')).allowed) times.push(burstAt)
      }
      return Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + 1000).length))
    }
    expect(await worstOf('strict')).toBeLessThanOrEqual(10)
    expect(await worstOf('classic')).toBeGreaterThan(10)
  })

  test('keys with braces, percent signs, colons, spaces or nothing in them are kept separate', async () => {
    const { limiter } = open(slidingLog({ limit: 1, windowMs: 1000 }))
    const keys = ['', '%', '{}', '{a}', 'a}', '}a{', 'a:b', 'a%3Ab', '%7b', 'ü☃', ' ', 'a:block', 'constructor']
    for (const key of keys) expect((await limiter.take(key)).allowed).toBe(true)
    for (const key of keys) expect((await limiter.take(key)).allowed).toBe(false)
  })
})
