import type { EvictionPolicy } from './eviction-policy.ts'
import { none } from './slot-lists.ts'

/**
 * SIEVE (Zhang et al., NSDI 2024): a FIFO list, one "visited" bit per slot, and a hand.
 *
 *     newest ── a ── b* ── c ── d* ── e   oldest
 *                         ▲ hand, walks towards the newest
 *
 * A hit sets the bit and moves nothing. To make room, the hand walks from where it last stopped towards the newest
 * entry, clears the bits that it passes, and evicts the first slot without one. So whatever was read since the hand
 * last passed keeps its place, and a new key that nobody reads again is evicted soon: it is ahead of the hand and has
 * no bit.
 *
 * Invariant: the hand is `none` or a slot in the list; removing that slot moves the hand on first. The walk ends within
 * two rounds, since the first one clears every bit. It is amortised O(1) per eviction, because every step clears a bit
 * that a hit has set. Unlike LRU it is not a stack algorithm: a larger cache can, rarely, hit less.
 */
export class SievePolicy implements EvictionPolicy {
  // Its own list: `SlotLists` holds several, which costs a look-up of the list's ends at every step.
  readonly #newer: Int32Array
  readonly #older: Int32Array
  readonly #isVisited: Uint8Array
  #newest = none
  #oldest = none
  #hand = none

  constructor(capacity: number) {
    this.#newer = new Int32Array(capacity)
    this.#older = new Int32Array(capacity)
    this.#isVisited = new Uint8Array(capacity)
  }

  insert(slot: number): void {
    this.#isVisited[slot] = 0
    this.#newer[slot] = none
    this.#older[slot] = this.#newest
    if (this.#newest === none) this.#oldest = slot
    else this.#newer[this.#newest] = slot
    this.#newest = slot
  }

  touch(slot: number): void {
    this.#isVisited[slot] = 1
  }

  remove(slot: number): void {
    if (this.#hand === slot) this.#hand = this.#newer[slot]!
    this.#unlink(slot)
  }

  evict(): number {
    const isVisited = this.#isVisited
    const newer = this.#newer
    let slot = this.#hand === none ? this.#oldest : this.#hand
    while (isVisited[slot] === 1) {
      isVisited[slot] = 0
      slot = newer[slot]!
      if (slot === none) slot = this.#oldest
    }
    this.#hand = newer[slot]!
    this.#unlink(slot)
    return slot
  }

  clear(): void {
    this.#newest = none
    this.#oldest = none
    this.#hand = none
  }

  #unlink(slot: number): void {
    const newer = this.#newer[slot]!
    const older = this.#older[slot]!
    if (newer === none) this.#newest = older
    else this.#older[newer] = older
    if (older === none) this.#oldest = newer
    else this.#newer[older] = newer
  }
}
