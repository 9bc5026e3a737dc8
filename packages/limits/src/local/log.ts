import type { Answer } from '../answer.ts'
import type { SlidingLogSpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied } from './algorithm.ts'
import { absorbedEnd } from './step-back.ts'

/**
 * The admitted calls of one key, oldest first from `head`; `total[i]` is the sum of all costs up to and including i.
 */
interface Entries {
  readonly times: number[]
  readonly totals: number[]
  head: number
  /** The total of what was dropped before `head`. */
  dropped: number
}

/**
 * Every admitted call with its time: a hit at t counts while t > now − windowMs.
 *
 * Running totals are kept next to the times, so usage takes one subtraction and the time to retry one binary search,
 * whatever the costs.
 */
export class Log implements Algorithm {
  readonly #limit: number
  readonly #windowMs: number
  readonly #slots: (Entries | undefined)[] = []

  constructor(spec: SlidingLogSpec) {
    this.#limit = spec.limit
    this.#windowMs = spec.windowMs
  }

  grow(): void {}

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const limit = this.#limit
    const entries = this.#settle(slot, nowMs)
    const used = usedOf(entries)
    if (used + cost > limit) {
      const retryAfterMs = cost > limit ? null : this.#retryAfterMs(entries, nowMs, used + cost - limit)
      return denied(limit - used, retryAfterMs, this.#resetMs(entries, nowMs))
    }
    if (charges && cost > 0) {
      entries.totals.push(entries.dropped + used + cost)
      entries.times.push(laterOf(nowMs, entries))
    }
    if (cost === 0) return admitted(limit - used, this.#resetMs(entries, nowMs), 0)
    return admitted(limit - used - cost, laterOf(nowMs, entries) + this.#windowMs - nowMs, 0)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const entries = this.#settle(slot, nowMs)
    const { times, totals } = entries
    const target = Math.max(entries.dropped, entries.dropped + usedOf(entries) - units)
    while (times.length > entries.head && totals[totals.length - 1]! > target) {
      const before = totals.length - 1 > entries.head ? totals[totals.length - 2]! : entries.dropped
      if (before < target) {
        totals[totals.length - 1] = target
        return
      }
      times.pop()
      totals.pop()
    }
  }

  unusedAtMs(slot: number): number {
    const times = this.#slots[slot]?.times
    return times === undefined || times.length === 0 ? 0 : times[times.length - 1]! + this.#windowMs
  }

  clear(slot: number): void {
    this.#slots[slot] = undefined
  }

  #settle(slot: number, nowMs: number): Entries {
    let entries = this.#slots[slot]
    if (entries === undefined) this.#slots[slot] = entries = { times: [], totals: [], head: 0, dropped: 0 }
    const { times } = entries
    const last = times.length > entries.head ? times[times.length - 1]! : 0
    if (last > nowMs) {
      const latest = absorbedEnd(last + this.#windowMs, nowMs, this.#windowMs) - this.#windowMs
      for (let index = times.length - 1; index >= entries.head && times[index]! > latest; index--) times[index] = latest
    }
    while (entries.head < times.length && times[entries.head]! <= nowMs - this.#windowMs) {
      entries.dropped = entries.totals[entries.head++]!
    }
    if (entries.head === times.length) {
      times.length = entries.totals.length = entries.head = entries.dropped = 0
    } else if (entries.head > 32 && entries.head * 2 > times.length) {
      times.splice(0, entries.head)
      entries.totals.splice(0, entries.head)
      entries.head = 0
    }
    return entries
  }

  /** Until the oldest entries that hold `excess` have left the window. */
  #retryAfterMs(entries: Entries, nowMs: number, excess: number): number {
    let low = entries.head
    let high = entries.times.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (entries.totals[middle]! - entries.dropped >= excess) high = middle
      else low = middle + 1
    }
    return entries.times[low]! + this.#windowMs - nowMs
  }

  #resetMs({ times, head }: Entries, nowMs: number): number {
    return times.length > head ? times[times.length - 1]! + this.#windowMs - nowMs : 0
  }
}

/** Now, or the last entry's time if the clock is behind it: entries stay in order. */
function laterOf(nowMs: number, { times, head }: Entries): number {
  return times.length > head ? Math.max(nowMs, times[times.length - 1]!) : nowMs
}

function usedOf({ totals, head, dropped }: Entries): number {
  return totals.length > head ? totals[totals.length - 1]! - dropped : 0
}
