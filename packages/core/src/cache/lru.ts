import type { EvictionPolicy } from './eviction-policy.ts'
import { SlotLists } from './slot-lists.ts'

/**
 * LRU: evicts what has not been read for the longest time.
 *
 * One list in order of last use. A hit moves the slot to the head, which takes four to six writes to distant memory:
 * that is the price of LRU compared with SIEVE and S3-FIFO, whose hits write one byte. A single scan over more keys
 * than the cache holds flushes everything. It is included because everyone knows exactly what it does.
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
