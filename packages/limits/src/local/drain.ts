import type { Answer } from '../answer.ts'
import type { DrainPlan } from '../spec/drain-plan.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/** The draining debt (see `DrainPlan`): token bucket, leaky bucket, leaky queue and GCRA. Two numbers a key. */
export class Drain implements Algorithm {
  readonly #plan: DrainPlan
  readonly #capacity: number
  readonly #unit: number
  readonly #rate: number
  /** For each slot the debt and, next to it (in one cache line), its time. */
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
    // If the clock is behind the state, the debt stays constant until it has caught up.
    const at = Math.max(nowMs, this.#state[slot * 2 + 1]!)
    const after = debt + cost * unit
    if (after > this.#capacity) {
      const resetMs = debt > 0 ? at - nowMs + Math.ceil(debt / this.#rate) : 0
      if (cost * unit > this.#capacity) return denied(Math.floor((this.#capacity - debt) / unit), null, resetMs)
      const retryAfterMs = at - nowMs + Math.ceil((after - this.#capacity) / this.#rate)
      return denied(Math.floor((this.#capacity - debt) / unit), retryAfterMs, resetMs)
    }
    if (charges && cost > 0) {
      this.#state[slot * 2] = after
      this.#state[slot * 2 + 1] = at
    }
    const delayMs = this.#plan.paces && after > unit && cost > 0 ? Math.ceil((after - unit) / this.#rate) : 0
    const resetMs = after > 0 ? at - nowMs + Math.ceil(after / this.#rate) : 0
    return admitted(Math.floor((this.#capacity - after) / unit), resetMs, delayMs)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const debt = this.#settle(slot, nowMs)
    this.#state[slot * 2] = Math.max(0, debt - units * this.#unit)
    if (nowMs > this.#state[slot * 2 + 1]!) this.#state[slot * 2 + 1] = nowMs
  }

  unusedAtMs(slot: number): number {
    return this.#state[slot * 2 + 1]! + Math.ceil(this.#state[slot * 2]! / this.#rate)
  }

  clear(slot: number): void {
    this.#state[slot * 2] = 0
  }

  /** The current debt; a clock behind the state's drains nothing. */
  #settle(slot: number, nowMs: number): number {
    const debt = this.#state[slot * 2]!
    const elapsed = nowMs - this.#state[slot * 2 + 1]!
    if (elapsed < 0) {
      this.#state[slot * 2 + 1] = nowMs + this.#absorbed(-elapsed, debt)
      return debt
    }
    const drained = elapsed * this.#rate
    return drained < debt ? debt - drained : 0
  }

  /**
   * How much of a step back is absorbed: as much as lets the next unit be admitted within a span (and a millisecond).
   */
  #absorbed(backMs: number, debt: number): number {
    const capacity = this.#capacity
    if (debt === 0 || backMs * this.#rate > capacity) return 0
    return Math.min(backMs, 1 + Math.floor((2 * capacity - this.#unit - debt) / this.#rate))
  }
}
