import type { EvictionPolicy } from './eviction-policy.ts'
import { SlotLists } from './slot-lists.ts'

/**
 * LRU: lets go what was not read for the longest time.
 *
 * One list in order of the last use. A hit moves the slot to the head, which is four to six writes to far places in
 * memory: that is the price of LRU against SIEVE and S3-FIFO, whose hits write one byte. One scan over more keys than the cache holds washes
 * everything out. It is here because people know exactly what it does.
 */
export class LruPolicy implements EvictionPolicy {
  readonly #lists: SlotLists

  constructor(capacity: number) {
    this.#lists = new SlotLists(capacity, 1)
  }

  insert(slot: number): void {
    this.#lists.addHead(0, slot)
  }

  touch(slot: number): void {
    if (this.#lists.head(0) === slot) return
    this.#lists.remove(0, slot)
    this.#lists.addHead(0, slot)
  }

  remove(slot: number): void {
    this.#lists.remove(0, slot)
  }

  evict(): number {
    const slot = this.#lists.tail(0)
    this.#lists.remove(0, slot)
    return slot
  }

  clear(): void {
    this.#lists.clear()
  }
}
