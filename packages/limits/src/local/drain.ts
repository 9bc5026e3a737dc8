import type { Answer } from '../answer.ts'
import type { DrainPlan } from '../spec/drain-plan.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/** The draining debt (see `DrainPlan`): token bucket, leaky bucket, leaky queue and GCRA. Two numbers a key. */
export class Drain implements Algorithm {
  readonly #paces: boolean
  readonly #capacity: number
  readonly #unit: number
  readonly #rate: number
  /** For each slot the debt and, next to it (in one cache line), its time. */
  #state = new Float64Array(0)

  constructor(plan: DrainPlan) {
    this.#paces = plan.paces
    this.#capacity = plan.capacity
    this.#unit = plan.unit
    this.#rate = plan.rate
  }

  grow(slots: number): void {
    this.#state = grown(this.#state, slots * 2)
  }

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const state = this.#state
    const place = slot * 2
    const elapsed = nowMs - state[place + 1]!
    const lagMs = elapsed < 0 ? this.#lag(place, nowMs) : 0
    let after = cost * this.#unit
    const drained = elapsed * this.#rate
    // Nothing drains while the clock is behind the state.
    if (drained < state[place]!) after += state[place]! - Math.max(0, drained)
    if (after > this.#capacity) return this.#deny(after, cost, lagMs)
    if (charges && cost > 0) {
      state[place] = after
      state[place + 1] = nowMs + lagMs
    }
    const resetMs = after > 0 ? lagMs + Math.ceil(after / this.#rate) : 0
    const delayMs = this.#paces && after > this.#unit && cost > 0 ? Math.ceil((after - this.#unit) / this.#rate) : 0
    return admitted(Math.floor((this.#capacity - after) / this.#unit), resetMs, delayMs)
  }

  /** Apart, so that the way of what is admitted stays short enough to be inlined. */
  #deny(after: number, cost: number, lagMs: number): Answer {
    const debt = after - cost * this.#unit
    const resetMs = debt > 0 ? lagMs + Math.ceil(debt / this.#rate) : 0
    const isPossible = cost * this.#unit <= this.#capacity
    const retryAfterMs = isPossible ? lagMs + Math.ceil((after - this.#capacity) / this.#rate) : null
    return denied(Math.floor((this.#capacity - debt) / this.#unit), retryAfterMs, resetMs)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const place = slot * 2
    const elapsed = nowMs - this.#state[place + 1]!
    const lagMs = elapsed < 0 ? this.#lag(place, nowMs) : 0
    this.#state[place] = Math.max(0, this.#state[place]! - Math.max(0, elapsed * this.#rate) - units * this.#unit)
    this.#state[place + 1] = nowMs + lagMs
  }

  unusedAtMs(slot: number): number {
    return this.#state[slot * 2 + 1]! + Math.ceil(this.#state[slot * 2]! / this.#rate)
  }

  clear(slot: number): void {
    this.#state[slot * 2] = 0
  }

  /** How far the clock is behind the state after it stepped back. */
  #lag(place: number, nowMs: number): number {
    const lagMs = this.#absorbed(this.#state[place + 1]! - nowMs, this.#state[place]!)
    this.#state[place + 1] = nowMs + lagMs
    return lagMs
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
