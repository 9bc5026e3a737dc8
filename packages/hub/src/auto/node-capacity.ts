/**
 * Learns how many operations per second a Redis node can do.
 *
 * A sample says: at S operations per second the node was busy for the fraction u of the time, so it would be saturated
 * at S / u. An operation costs Redis less the more of them arrive at once (fewer turns of its event loop, fewer system
 * calls), so estimates at low load are too low: a node at 5 % may look saturated at a third of what it can do. Each
 * sample therefore weighs u², and samples of the busy hour outweigh those of the quiet ones that follow, while they
 * fade (by 3 % per sample, about half a minute at one per second) as the mix of commands changes.
 *
 *     weight W ← 0.97·W + u²        capacity C ← C + (u² / W)·(S/u − C)
 *
 * Below `leastUse` a sample reflects the server's own housekeeping more than operations, and is left out. Until the
 * node has been seen at `trustedUse` once, the estimate may be too low by some factor: `isTrusted` says so, and nobody
 * acts on an extrapolation of it.
 */
export class NodeCapacity {
  #capacity = 0
  #weight = 0
  #highestUse = 0

  /** Operations per second at which the node would be saturated; undefined while unknown. */
  get perSecond(): number | undefined {
    return this.#capacity === 0 ? undefined : this.#capacity
  }

  /** False while the node has only been seen so idle that its behaviour under load is unknown. */
  get isTrusted(): boolean {
    return this.#highestUse >= trustedUse
  }

  /** Takes a sample: serving `perSecond` operations, the node was busy for the fraction `use` of the time. */
  learn(perSecond: number, use: number): void {
    this.#highestUse = Math.max(use, this.#highestUse * highestFade)
    if (use < leastUse || perSecond <= 0) return
    const weight = use * use
    this.#weight = this.#weight * fade + weight
    const share = weight / this.#weight
    this.#capacity += share * (perSecond / use - this.#capacity)
  }
}

const fade = 0.97
/** The highest use fades over hours: what was learned at it stays true for long. */
const highestFade = 0.9999
const leastUse = 0.03
const trustedUse = 0.15
