import type { Answer } from '../answer.ts'
import type { SlidingCounterSpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'
import { absorbedEnd } from './step-back.ts'

/** What counts now. */
interface Counted {
  readonly start: number
  readonly before: number
  readonly current: number
}

/**
 * Two weighted windows: used = before × (share of the window before that the last `windowMs` covers) + current.
 *
 * Multiplied by `windowMs`, everything is a whole number: used' = before × (windowMs − into) + current × windowMs,
 * where `into` is how far now is into its window. It falls by `before` a millisecond until the window's end and by
 * `current` a millisecond after it, which gives the exact time to retry. It assumes that the previous window's hits
 * were evenly spread; if not, up to twice the limit can fall into one `windowMs`.
 *
 * Windows begin at multiples of `windowMs`, except for a key whose window was moved by a clock that stepped back: it
 * keeps its phase until it is unused.
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
    const { start, before, current } = this.#settle(slot, nowMs)
    const used = before * (windowMs - Math.max(0, nowMs - start)) + current * windowMs
    const capacity = this.#limit * windowMs
    const after = used + cost * windowMs
    if (after > capacity) {
      const remaining = Math.max(0, Math.floor((capacity - used) / windowMs))
      const resetMs = this.#resetMs(before, current, start - nowMs)
      if (cost > this.#limit) return denied(remaining, null, resetMs)
      return denied(remaining, this.#retryAfterMs(before, current, start + windowMs - nowMs, cost), resetMs)
    }
    if (charges && cost > 0) {
      this.#start[slot] = start
      this.#before[slot] = before
      this.#current[slot] = current + cost
    }
    const resetMs = this.#resetMs(before, current + cost, start - nowMs)
    return admitted(Math.floor((capacity - after) / windowMs), resetMs, 0)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const { start, before, current } = this.#settle(slot, nowMs)
    this.#start[slot] = start
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

  #settle(slot: number, nowMs: number): Counted {
    const windowMs = this.#windowMs
    const before = this.#before[slot]!
    const current = this.#current[slot]!
    const start = this.#start[slot]!
    const passed = nowMs - start
    if (passed >= 0 && passed < windowMs) {
      if (before > 0 || current > 0) return { start, before, current }
    } else if (passed < 0) {
      if (before > 0 || current > 0) {
        // The count begins to fade once the clock has caught up with the window's start.
        this.#start[slot] = absorbedEnd(start + windowMs, nowMs, windowMs) - windowMs
        return { start: this.#start[slot], before, current }
      }
    } else if (passed < 2 * windowMs && current > 0) return { start: start + windowMs, before: current, current: 0 }
    return { start: nowMs - (nowMs % windowMs), before: 0, current: 0 }
  }

  #retryAfterMs(before: number, current: number, untilEdge: number, cost: number): number {
    const windowMs = this.#windowMs
    const capacity = this.#limit * windowMs
    const atEdge = (current + cost) * windowMs
    if (atEdge <= capacity) return Math.ceil((before * untilEdge + atEdge - capacity) / before)
    return untilEdge + Math.ceil((atEdge - capacity) / current)
  }

  #resetMs(before: number, current: number, untilStart: number): number {
    if (current > 0) return 2 * this.#windowMs + untilStart
    return before > 0 ? this.#windowMs + untilStart : 0
  }
}
