import fc from 'fast-check'
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

/** One step of a history: time moves (possibly back), then a call. */
export interface Step {
  readonly moveMs: number
  readonly call: 'take' | 'refund' | 'peek'
  readonly cost: number
}

const small = fc.integer({ min: 1, max: 12 })
const span = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 51, max: 5000 }))
const rate = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(0.5, 0.1, 2.5, 0.001))

/** Specs of every kind, with awkward numbers. */
export const specs: Record<LimitSpec['kind'], fc.Arbitrary<LimitSpec>> = {
  fixedWindow: fc
    .record({ limit: small, windowMs: span, anchor: fc.constantFrom('epoch' as const, 'firstHit' as const) })
    .map(fixedWindow),
  slidingWindow: fc
    .record({
      limit: small,
      windowMs: fc.integer({ min: 12, max: 5000 }),
      buckets: fc.integer({ min: 1, max: 12 }),
      mode: fc.constantFrom('strict' as const, 'classic' as const),
    })
    .map(slidingWindow),
  slidingCounter: fc.record({ limit: small, windowMs: span }).map(slidingCounter),
  slidingLog: fc.record({ limit: small, windowMs: span }).map(slidingLog),
  tokenBucket: fc.record({ capacity: small, refill: rate, perMs: span }).map(tokenBucket),
  leakyBucket: fc.record({ capacity: small, leak: rate, perMs: span }).map(leakyBucket),
  leakyQueue: fc
    .record({ intervalMs: fc.oneof(span, fc.constantFrom(0.5, 333.333, 0.2)), queue: fc.integer({ min: 0, max: 8 }) })
    .map(leakyQueue),
  gcra: fc.record({ capacity: small, rate, perMs: span }).map(gcra),
  calendarWindow: fc
    .record({
      limit: small,
      unit: fc.constantFrom('hour' as const, 'day' as const),
      timeZone: fc.constantFrom('UTC', 'Asia/Shanghai', 'Europe/Berlin', 'Asia/Kolkata'),
    })
    .map(calendarWindow),
  concurrency: fc.record({ limit: small, leaseMs: span }).map(concurrency),
}

/** A history for a spec that remembers `reachMs`. */
export function history(reachMs: number, options: { stepsBack: boolean; refunds: boolean }): fc.Arbitrary<Step[]> {
  const forward = fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.integer({ min: 1, max: Math.max(2, Math.ceil(reachMs / 4)) }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: reachMs * 3 }) },
  )
  const moveMs = options.stepsBack
    ? fc.oneof({ weight: 9, arbitrary: forward }, { weight: 1, arbitrary: fc.integer({ min: -reachMs * 3, max: -1 }) })
    : forward
  const call = options.refunds
    ? fc.constantFrom('take' as const, 'take' as const, 'take' as const, 'refund' as const, 'peek' as const)
    : fc.constantFrom('take' as const, 'take' as const, 'peek' as const)
  const cost = fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 14 }) },
  )
  return fc.array(fc.record({ moveMs, call, cost }), { minLength: 1, maxLength: 40 })
}
