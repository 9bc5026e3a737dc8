import type { DrainSpec } from './spec.ts'
import { wholeRatio } from './whole-ratio.ts'

/**
 * Token bucket, leaky bucket, leaky queue and GCRA are four descriptions of the same thing: a debt that calls raise and
 * time drains. A token bucket counts what is missing from full instead of what is there; GCRA's theoretical arrival
 * time is now plus the debt; the queue is a bucket whose debt is also the time to wait.
 *
 * The debt is kept in units of 1/unit call, with `unit` chosen so that a millisecond drains a whole number of them: at
 * 1 per 3000 ms a call is 3000 units and a millisecond drains 1. So no rounding happens anywhere, and nothing drifts.
 * `Math.ceil(a / b)` and `Math.floor(a / b)` of such numbers are exact too: for whole a < 2^53 a quotient that is not
 * whole is at least 1/b away from the next whole number, and rounding moves it by less.
 */
export interface DrainPlan {
  /** The highest debt. */
  readonly capacity: number
  /** The debt of one call of cost 1. */
  readonly unit: number
  /** What a millisecond drains. */
  readonly rate: number
  /** True if the debt before a call is the time it waits. */
  readonly paces: boolean
}

/** The draining debt that a spec describes. */
export function drainPlan(spec: DrainSpec): DrainPlan {
  switch (spec.kind) {
    case 'tokenBucket':
      return plan(spec.capacity, wholeRatio('refill', spec.refill, spec.perMs), false)
    case 'leakyBucket':
      return plan(spec.capacity, wholeRatio('leak', spec.leak, spec.perMs), false)
    case 'gcra':
      return plan(spec.capacity, wholeRatio('rate', spec.rate, spec.perMs), false)
    case 'leakyQueue':
      return plan(spec.queue + 1, wholeRatio('intervalMs', 1, spec.intervalMs), true)
  }
}

function plan(capacity: number, ratio: { amount: number; perMs: number }, paces: boolean): DrainPlan {
  return { capacity: capacity * ratio.perMs, unit: ratio.perMs, rate: ratio.amount, paces }
}
