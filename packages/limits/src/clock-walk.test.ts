import { scale, seededRandom } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Calendar } from './calendar/calendar.ts'
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
import { bothEngines, type TestedLimiter } from './testing/engines.ts'

const engines = bothEngines()
const startMs = Date.UTC(2026, 2, 28, 21, 59, 59, 500)
const windowMs = 1000

/** A limit of 10 with a span of a second (an hour for the calendar), and how much one stretch of a span may admit. */
interface Walked {
  readonly spec: LimitSpec
  readonly spanMs: number
  readonly most: number
  /** The time until a used-up key has a free unit again, if no other call comes. */
  readonly lockOutMs: number
}

const plain = (spec: LimitSpec, most: number, lockOutMs = windowMs): Walked => ({
  spec,
  spanMs: windowMs,
  most,
  lockOutMs,
})
const rate = { perMs: windowMs }
const walked: Record<string, Walked> = {
  'fixedWindow of the epoch': plain(fixedWindow({ limit: 10, windowMs }), 20),
  'fixedWindow from the first hit': plain(fixedWindow({ limit: 10, windowMs, anchor: 'firstHit' }), 20),
  'slidingWindow, strict': plain(slidingWindow({ limit: 10, windowMs }), 10, 1100),
  'slidingWindow, classic': plain(slidingWindow({ limit: 10, windowMs, mode: 'classic' }), 20, 1100),
  slidingCounter: plain(slidingCounter({ limit: 10, windowMs }), 20, 2 * windowMs),
  slidingLog: plain(slidingLog({ limit: 10, windowMs }), 10),
  tokenBucket: plain(tokenBucket({ capacity: 10, refill: 10, ...rate }), 20),
  leakyBucket: plain(leakyBucket({ capacity: 10, leak: 10, ...rate }), 20),
  leakyQueue: plain(leakyQueue({ intervalMs: 100, queue: 9 }), 20),
  gcra: plain(gcra({ capacity: 10, rate: 10, ...rate }), 20),
  concurrency: plain(concurrency({ limit: 10, leaseMs: windowMs }), 10),
  calendarWindow: {
    ...plain(calendarWindow({ limit: 10, unit: 'hour' }), 20),
    spanMs: 3_600_000,
    lockOutMs: 3_600_000,
  },
}
const cases = Object.entries(walked).flatMap(([name, limit]) =>
  (['local', 'redis'] as const).map((engine) => ({ name, engine, limit })),
)

async function drain(limiter: TestedLimiter, atMost: number): Promise<number> {
  let admitted = 0
  while (admitted < atMost && (await limiter.take('k')).allowed) admitted++
  return admitted
}

/** Splits readings into stretches that differ by at most a span; returns how many there are. */
class Stretches {
  count = 1
  #low = Number.POSITIVE_INFINITY
  #high = Number.NEGATIVE_INFINITY
  readonly #spanMs: number

  constructor(spanMs: number) {
    this.#spanMs = spanMs
  }

  read(nowMs: number): void {
    this.#low = Math.min(this.#low, nowMs)
    this.#high = Math.max(this.#high, nowMs)
    if (this.#high - this.#low <= this.#spanMs) return
    this.count++
    this.#low = this.#high = nowMs
  }
}

test.each(cases)(
  '$name, $engine: a clock that goes back and forth within a span grants nothing, however often',
  async ({ engine, limit: { spec, spanMs, most } }) => {
    for (const backMs of [1, Math.floor(spanMs / 2), spanMs - 1, spanMs]) {
      const clock = { at: startMs, now: () => clock.at }
      const limiter = engines[engine](spec, clock)
      let admitted = await drain(limiter, 100)
      for (let round = 0; round < 20; round++) {
        clock.at = startMs - backMs
        admitted += await drain(limiter, 100)
        clock.at = startMs
        admitted += await drain(limiter, 100)
      }
      expect(admitted, `back by ${backMs}`).toBeLessThanOrEqual(most === 20 && backMs < spanMs ? 10 : most)
    }
  },
)

test.each(cases)(
  '$name, $engine: no random walk of the clock admits more than the bound',
  async ({ engine, limit: { spec, spanMs, most } }) => {
    for (let seed = 1; seed <= scale(engine === 'local' ? 200 : 6, engine === 'local' ? 2000 : 100); seed++) {
      const random = seededRandom(seed)
      const clock = { at: startMs, now: () => clock.at }
      const limiter = engines[engine](spec, clock)
      const stretches = new Stretches(spanMs)
      // Some walks stay within a span, some do not.
      const reach = spanMs * [0.02, 0.5, 1, 2.5][seed % 4]!
      let admitted = 0
      for (let step = 0; step < 60; step++) {
        const moveMs = Math.floor((random() * 2 - 1) * reach)
        clock.at = random() < 0.2 ? startMs + moveMs : clock.at + moveMs
        stretches.read(clock.at)
        admitted += await drain(limiter, Math.ceil(random() * 12))
        expect(admitted, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(most * stretches.count)
      }
    }
  },
)

test.each(cases)(
  '$name, $engine: no step of the clock locks a key out for longer than its span',
  async ({ engine, limit: { spec, spanMs, lockOutMs } }) => {
    for (const backMs of [1, spanMs / 2, spanMs, spanMs * 1.5, spanMs * 10, 400 * 86_400_000]) {
      const clock = { at: startMs, now: () => clock.at }
      const limiter = engines[engine](spec, clock)
      await drain(limiter, 100)
      clock.at -= Math.floor(backMs)
      const answer = await limiter.take('k')
      if (!answer.allowed) expect(answer.retryAfterMs, `back by ${backMs}`).toBeLessThanOrEqual(lockOutMs + 1)
      clock.at += lockOutMs + 1
      expect((await limiter.take('k')).allowed, `back by ${backMs}`).toBe(true)
    }
  },
)

test('the calendar in these walks has a boundary within reach', () => {
  const edge = new Calendar('hour', 'UTC').windowOf(startMs).end
  expect(edge - startMs).toBe(500)
})
