/**
 * Learns how many operations a second a Redis node can do.
 *
 * A sample says: at S operations a second the node was busy for the part u of its time, so that it would be full at S /
 * u. Redis does an operation for less the more of them come at once (fewer turns of its event loop, fewer system
 * calls), so what is learnt at a low load is too small: a node at 5 % may look full at a third of what it can do. Each
 * sample therefore weighs u², and samples of the busy hour outweigh those of the quiet ones that follow, while they
 * fade (by 3 % a sample, some half a minute at one a second) as the commands that come change.
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

  /** Operations a second at which the node would be full; undefined while nothing is known. */
  get perSecond(): number | undefined {
    return this.#capacity === 0 ? undefined : this.#capacity
  }

  /** False while the node was only seen so idle that nothing can be said of it under load. */
  get isTrusted(): boolean {
    return this.#highestUse >= trustedUse
  }

  /** A node that served `perSecond` operations was busy for the part `use` of its time. */
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
/** The highest use fades within hours: what was seen of it stays true for long. */
const highestFade = 0.9999
const leastUse = 0.03
const trustedUse = 0.15
