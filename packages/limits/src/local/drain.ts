import type { Answer } from '../answer.ts'
import type { DrainPlan } from '../spec/drain-plan.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/** The draining debt (see `DrainPlan`): token bucket, leaky bucket, leaky queue and GCRA. Two numbers a key. */
export class Drain implements Algorithm {
  readonly #plan: DrainPlan
  readonly #capacity: number
  readonly #unit: number
  readonly #rate: number
  /** When `#debt` was true. */
  #at = new Float64Array(0)
  #debt = new Float64Array(0)

  constructor(plan: DrainPlan) {
    this.#plan = plan
    this.#capacity = plan.capacity
    this.#unit = plan.unit
    this.#rate = plan.rate
  }

  grow(slots: number): void {
    this.#at = grown(this.#at, slots)
    this.#debt = grown(this.#debt, slots)
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
      this.#at[slot] = nowMs
      this.#debt[slot] = after
    }
    const delayMs = this.#plan.paces && after > unit && cost > 0 ? Math.ceil((after - unit) / this.#rate) : 0
    return admitted(Math.floor((this.#capacity - after) / unit), Math.ceil(after / this.#rate), delayMs)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const debt = this.#settle(slot, nowMs)
    this.#at[slot] = nowMs
    this.#debt[slot] = Math.max(0, debt - units * this.#unit)
  }

  unusedAtMs(slot: number): number {
    return this.#at[slot]! + Math.ceil(this.#debt[slot]! / this.#rate)
  }

  clear(slot: number): void {
    this.#debt[slot] = 0
  }

  /** The debt of now; a clock behind `#at` is followed without draining anything. */
  #settle(slot: number, nowMs: number): number {
    const debt = this.#debt[slot]!
    const elapsed = nowMs - this.#at[slot]!
    if (elapsed < 0) {
      this.#at[slot] = nowMs
      return debt
    }
    const drained = elapsed * this.#rate
    return drained < debt ? debt - drained : 0
  }
}
