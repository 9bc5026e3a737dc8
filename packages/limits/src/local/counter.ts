import type { Answer } from '../answer.ts'
import type { SlidingCounterSpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/**
 * Two weighted windows: used = before × (share of the window before that the last `windowMs` covers) + current.
 *
 * Multiplied by `windowMs` all of it is whole: used' = before × (windowMs − into) + current × windowMs, where `into` is
 * how far now is into its window. It falls by `before` a millisecond until the window's end and by `current` a
 * millisecond after it, which gives the exact time to retry. It assumes that the hits of the window before were even;
 * where they were not, up to twice the limit can fall into one `windowMs`.
 */
export class Counter implements Algorithm {
  readonly #limit: number
  readonly #windowMs: number
  #start = new Float64Array(0)
  #before = new Float64Array(0)
  #current = new Float64Array(0)

  constructor(spec: SlidingCounterSpec) {
    this.#limit = spec.limit
    this.#windowMs = spec.windowMs
  }

  grow(slots: number): void {
    this.#start = grown(this.#start, slots)
    this.#before = grown(this.#before, slots)
    this.#current = grown(this.#current, slots)
  }

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const windowMs = this.#windowMs
    const into = nowMs % windowMs
    const { before, current } = this.#settle(slot, nowMs, into)
    const used = before * (windowMs - into) + current * windowMs
    const capacity = this.#limit * windowMs
    const after = used + cost * windowMs
    if (after > capacity) {
      const remaining = Math.max(0, Math.floor((capacity - used) / windowMs))
      const resetMs = this.#resetMs(before, current, into)
      if (cost > this.#limit) return denied(remaining, null, resetMs)
      return denied(remaining, this.#retryAfterMs(before, current, into, cost), resetMs)
    }
    if (charges && cost > 0) {
      this.#start[slot] = nowMs - into
      this.#before[slot] = before
      this.#current[slot] = current + cost
    }
    return admitted(Math.floor((capacity - after) / windowMs), this.#resetMs(before, current + cost, into), 0)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const into = nowMs % this.#windowMs
    const { before, current } = this.#settle(slot, nowMs, into)
    this.#start[slot] = nowMs - into
    this.#current[slot] = Math.max(0, current - units)
    this.#before[slot] = Math.max(0, before - Math.max(0, units - current))
  }

  unusedAtMs(slot: number): number {
    if (this.#current[slot]! > 0) return this.#start[slot]! + 2 * this.#windowMs
    return this.#before[slot]! > 0 ? this.#start[slot]! + this.#windowMs : 0
  }

  clear(slot: number): void {
    this.#before[slot] = 0
    this.#current[slot] = 0
  }

  #settle(slot: number, nowMs: number, into: number): { before: number; current: number } {
    const windowStart = nowMs - into
    const passed = windowStart - this.#start[slot]!
    const current = this.#current[slot]!
    if (passed === 0) return { before: this.#before[slot]!, current }
    if (passed < 0) {
      this.#start[slot] = windowStart
      return { before: this.#before[slot]!, current }
    }
    return { before: passed === this.#windowMs ? current : 0, current: 0 }
  }

  #retryAfterMs(before: number, current: number, into: number, cost: number): number {
    const windowMs = this.#windowMs
    const capacity = this.#limit * windowMs
    const atEdge = (current + cost) * windowMs
    const untilEdge = windowMs - into
    if (atEdge <= capacity) return Math.ceil((before * untilEdge + atEdge - capacity) / before)
    return untilEdge + Math.ceil((atEdge - capacity) / current)
  }

  #resetMs(before: number, current: number, into: number): number {
    if (current > 0) return 2 * this.#windowMs - into
    return before > 0 ? this.#windowMs - into : 0
  }
}
