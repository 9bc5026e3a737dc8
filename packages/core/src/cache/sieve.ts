import type { EvictionPolicy } from './eviction-policy.ts'
import { none, SlotLists } from './slot-lists.ts'

/**
 * SIEVE (Zhang et al., NSDI 2024): a FIFO list, one "visited" bit per slot, and a hand.
 *
 *     newest ── a ── b* ── c ── d* ── e   oldest
 *                         ▲ hand, walks towards the newest
 *
 * A hit sets the bit and moves nothing. To make room, the hand walks from where it last stopped towards the newest
 * entry, clears the bits that it meets, and lets go the first slot without one. So what was read since the hand last
 * passed stays in its place, and a new key that nobody reads again falls soon: it sits before the hand and has no bit.
 *
 * Invariant: the hand is none or a slot in the list; whoever removes that slot moves the hand on first. The walk ends
 * within two rounds, since the first one clears every bit; over time it is O(1) per eviction, because every step of it
 * clears a bit that a hit has set. Unlike LRU it is not stack-based: a larger cache can, rarely, hit less.
 */
export class SievePolicy implements EvictionPolicy {
  readonly #list: SlotLists
  readonly #isVisited: Uint8Array
  #hand = none

  constructor(capacity: number) {
    this.#list = new SlotLists(capacity, 1)
    this.#isVisited = new Uint8Array(capacity)
  }

  insert(slot: number): void {
    this.#isVisited[slot] = 0
    this.#list.addHead(0, slot)
  }

  touch(slot: number): void {
    this.#isVisited[slot] = 1
  }

  remove(slot: number): void {
    if (this.#hand === slot) this.#hand = this.#list.previous[slot]!
    this.#list.remove(0, slot)
  }

  evict(): number {
    let slot = this.#hand === none ? this.#list.tail(0) : this.#hand
    while (this.#isVisited[slot] === 1) {
      this.#isVisited[slot] = 0
      const newer = this.#list.previous[slot]!
      slot = newer === none ? this.#list.tail(0) : newer
    }
    this.#hand = this.#list.previous[slot]!
    this.#list.remove(0, slot)
    return slot
  }

  clear(): void {
    this.#list.clear()
    this.#hand = none
  }
}
