import type { Answer } from '../answer.ts'
import type { DrainPlan } from '../spec/drain-plan.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/** The draining debt (see `DrainPlan`): token bucket, leaky bucket, leaky queue and GCRA. Two numbers a key. */
export class Drain implements Algorithm {
  readonly #plan: DrainPlan
  readonly #capacity: number
  readonly #unit: number
  readonly #rate: number
  /** For each slot the debt, and next to it (one cache line serves both) when it was that. */
  #state = new Float64Array(0)

  constructor(plan: DrainPlan) {
    this.#plan = plan
    this.#capacity = plan.capacity
    this.#unit = plan.unit
    this.#rate = plan.rate
  }

  grow(slots: number): void {
    this.#state = grown(this.#state, slots * 2)
  }

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const unit = this.#unit
    const debt = this.#settle(slot, nowMs)
    const after = debt + cost * unit
    if (after > this.#capacity) {
      const retryAfterMs = cost * unit > this.#capacity ? null : Math.ceil((after - this.#capacity) / this.#rate)
      return denied(Math.floor((this.#capacity - debt) / unit), retryAfterMs, Math.ceil(debt / this.#rate))
    }
    if (charges && cost > 0) {
      this.#state[slot * 2] = after
      this.#state[slot * 2 + 1] = nowMs
    }
    const delayMs = this.#plan.paces && after > unit && cost > 0 ? Math.ceil((after - unit) / this.#rate) : 0
    return admitted(Math.floor((this.#capacity - after) / unit), Math.ceil(after / this.#rate), delayMs)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const debt = this.#settle(slot, nowMs)
    this.#state[slot * 2] = Math.max(0, debt - units * this.#unit)
    this.#state[slot * 2 + 1] = nowMs
  }

  unusedAtMs(slot: number): number {
    return this.#state[slot * 2 + 1]! + Math.ceil(this.#state[slot * 2]! / this.#rate)
  }

  clear(slot: number): void {
    this.#state[slot * 2] = 0
  }

  /** The debt of now; a clock behind the state's is followed without draining anything. */
  #settle(slot: number, nowMs: number): number {
    const debt = this.#state[slot * 2]!
    const elapsed = nowMs - this.#state[slot * 2 + 1]!
    if (elapsed < 0) {
      this.#state[slot * 2 + 1] = nowMs
      return debt
    }
    const drained = elapsed * this.#rate
    return drained < debt ? debt - drained : 0
  }
}
