import type { Answer } from '../answer.ts'
import type { ConcurrencySpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied } from './algorithm.ts'
import { absorbedEnd } from './step-back.ts'

/** Units held by one call. */
interface Hold {
  endsAt: number
  units: number
  readonly requestId: string | undefined
}

/**
 * Units held at once. A hold is released by `refund`, by its request id if it was taken with one (otherwise the oldest
 * holds are released), and expires after `leaseMs`. A late refund of an expired hold releases nothing if it gives its
 * request id; without one it cannot be distinguished from another's.
 */
export class Concurrency implements Algorithm {
  readonly #limit: number
  readonly #leaseMs: number
  /** Oldest first; all have the same lease, so also in order of their end. */
  readonly #slots: Hold[][] = []

  constructor(spec: ConcurrencySpec) {
    this.#limit = spec.limit
    this.#leaseMs = spec.leaseMs
  }

  grow(): void {}

  take(slot: number, nowMs: number, cost: number, charges: boolean, requestId?: string): Answer {
    const limit = this.#limit
    const holds = this.#settle(slot, nowMs)
    let used = 0
    for (const hold of holds) used += hold.units
    if (used + cost > limit) {
      let retryAfterMs: number | null = null
      if (cost <= limit) {
        let excess = used + cost - limit
        for (let index = 0; excess > 0; index++) {
          excess -= holds[index]!.units
          retryAfterMs = holds[index]!.endsAt - nowMs
        }
      }
      return denied(limit - used, retryAfterMs, resetMs(holds, nowMs))
    }
    if (cost === 0) return admitted(limit - used, resetMs(holds, nowMs), 0)
    // Holds stay in the order of their end, even if the clock is behind the last one's.
    const endsAt = Math.max(nowMs + this.#leaseMs, holds.at(-1)?.endsAt ?? 0)
    if (charges) holds.push({ endsAt, units: cost, requestId })
    return admitted(limit - used - cost, endsAt - nowMs, 0)
  }

  refund(slot: number, nowMs: number, units: number, requestId?: string): void {
    const holds = this.#settle(slot, nowMs)
    let left = units
    for (let index = 0; index < holds.length && left > 0; ) {
      const hold = holds[index]!
      if (requestId !== undefined && hold.requestId !== requestId) {
        index++
        continue
      }
      const back = Math.min(left, hold.units)
      hold.units -= back
      left -= back
      if (hold.units === 0) holds.splice(index, 1)
    }
  }

  unusedAtMs(slot: number): number {
    return this.#slots[slot]?.at(-1)?.endsAt ?? 0
  }

  clear(slot: number): void {
    this.#slots[slot] = []
  }

  #settle(slot: number, nowMs: number): Hold[] {
    const holds = (this.#slots[slot] ??= [])
    let ended = 0
    while (ended < holds.length && holds[ended]!.endsAt <= nowMs) ended++
    if (ended > 0) holds.splice(0, ended)
    const latest = absorbedEnd(holds.at(-1)?.endsAt ?? 0, nowMs, this.#leaseMs)
    for (let index = holds.length - 1; index >= 0 && holds[index]!.endsAt > latest; index--) {
      holds[index]!.endsAt = latest
    }
    return holds
  }
}

function resetMs(holds: readonly Hold[], nowMs: number): number {
  const last = holds.at(-1)
  return last === undefined ? 0 : last.endsAt - nowMs
}
