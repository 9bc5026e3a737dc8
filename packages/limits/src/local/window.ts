import type { Answer } from '../answer.ts'
import { Calendar } from '../calendar/calendar.ts'
import type { CalendarWindowSpec, FixedWindowSpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'
import { absorbedEnd } from './step-back.ts'

/**
 * A count per window: fixed windows of the epoch or from the first hit, and those of the calendar. Two numbers a key:
 * the count and the end of its window, which also names the window.
 *
 * A window ends at most its length from now: one that would end later was opened before the clock stepped back.
 */
export class Window implements Algorithm {
  readonly #limit: number
  /** The end of the window that contains an instant, if it began then. */
  readonly #endOf: (nowMs: number) => number
  /** The length of the window that contains an instant. */
  readonly #lengthAt: (nowMs: number) => number
  /** For each slot the count and the end of its window. */
  #state = new Float64Array(0)

  constructor(spec: FixedWindowSpec | CalendarWindowSpec) {
    this.#limit = spec.limit
    if (spec.kind === 'calendarWindow') {
      const calendar = new Calendar(spec.unit, spec.timeZone)
      this.#endOf = (nowMs) => calendar.windowOf(nowMs).end
      this.#lengthAt = (nowMs) => {
        const { start, end } = calendar.windowOf(nowMs)
        return end - start
      }
    } else {
      const { windowMs } = spec
      this.#endOf = endFinder(spec)
      this.#lengthAt = () => windowMs
    }
  }

  grow(slots: number): void {
    this.#state = grown(this.#state, slots * 2)
  }

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const limit = this.#limit
    const used = this.#settle(slot, nowMs)
    if (used + cost > limit) {
      const resetMs = used > 0 ? this.#state[slot * 2 + 1]! - nowMs : 0
      return denied(limit - used, cost > limit ? null : resetMs, resetMs)
    }
    const after = used + cost
    if (after === 0) return admitted(limit, 0, 0)
    const end = used > 0 ? this.#state[slot * 2 + 1]! : this.#endOf(nowMs)
    if (charges) {
      this.#state[slot * 2 + 1] = end
      this.#state[slot * 2] = after
    }
    return admitted(limit - after, end - nowMs, 0)
  }

  refund(slot: number, nowMs: number, units: number): void {
    this.#state[slot * 2] = Math.max(0, this.#settle(slot, nowMs) - units)
  }

  unusedAtMs(slot: number): number {
    return this.#state[slot * 2] === 0 ? 0 : this.#state[slot * 2 + 1]!
  }

  clear(slot: number): void {
    this.#state[slot * 2] = 0
  }

  /** The count of the current window. */
  #settle(slot: number, nowMs: number): number {
    const end = this.#state[slot * 2 + 1]!
    if (nowMs >= end) return 0
    const lengthMs = this.#lengthAt(nowMs)
    if (end > nowMs + lengthMs) this.#state[slot * 2 + 1] = absorbedEnd(end, nowMs, lengthMs)
    return this.#state[slot * 2]!
  }
}

function endFinder({ windowMs, anchor }: FixedWindowSpec): (nowMs: number) => number {
  if (anchor === 'firstHit') return (nowMs) => nowMs + windowMs
  let end = 0
  return (nowMs) => {
    if (nowMs >= end || nowMs < end - windowMs) end = nowMs - (nowMs % windowMs) + windowMs
    return end
  }
}
