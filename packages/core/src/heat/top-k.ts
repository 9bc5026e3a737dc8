import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** How many keys a `TopK` counts. */
export interface TopKOptions {
  /** Maximum number of keys that have a counter. @default 4096 */
  readonly capacity?: number
}

/** A key with the bounds of its count: the true one is between `count` and `count + error`. */
export interface TopKItem {
  readonly key: string
  /** Accesses that are certain. */
  count: number
  writes: number
  bytes: number
  /** Accesses that may be missing from `count`. */
  readonly error: number
}

/**
 * The most accessed keys of a stream in bounded memory: Frequent Items (Misra and Gries' counters, purged in batches as
 * in DataSketches).
 *
 * At most `capacity` keys have a counter. When a new key finds all of them taken, the *median* m of the counters is
 * subtracted from each; at least half fall to zero and are dropped, and `offset` grows by m. Nothing is actually
 * subtracted: a key remembers the offset at which it arrived (`error`) and counts exactly from there, so its counter is
 * count + error - offset, and it is dropped once that is not above zero.
 *
 * Bound. Before a key arrived it can have lost at most the offset at that moment, so its true count is in [count, count
 * + error], and a key without a counter has at most `offset`. Each purge takes m off at least half of the counters, so
 * it removes at least m · capacity / 2 of the incoming weight; all purges together cannot remove more than came in, N.
 * Hence **offset ≤ 2 · N / capacity**, and every key with more than that has a counter. With 4,096 counters a key with
 * 0.05 % of the accesses is never missed.
 *
 * Why not Space-Saving: its bound is twice as good for the same number of counters, but it replaces its smallest key on
 * each new one, which costs a stream of mostly new keys (the only kind that overflows the shield's exact counter) a Map
 * deletion and insertion per access; a purge costs that once for half of the capacity, under a millisecond.
 */
export class TopK {
  readonly capacity: number
  readonly #items = new Map<string, TopKItem>()
  #offset = 0
  #totalCount = 0

  constructor(options: TopKOptions = {}) {
    const { capacity = 4096 } = options
    if (!Number.isInteger(capacity) || capacity < 2) {
      throw new InvalidOptionError('capacity', capacity, 'a whole number of at least 2')
    }
    this.capacity = capacity
  }

  /** Number of keys with a counter. */
  get size(): number {
    return this.#items.size
  }

  /** All accesses added. */
  get totalCount(): number {
    return this.#totalCount
  }

  /**
   * No key without a counter has more accesses than this, and no count is too low by more; at most 2 · totalCount /
   * capacity.
   */
  get errorBound(): number {
    return this.#offset
  }

  /** Counts accesses of a key; returns the certain part of its count. */
  add(key: string, count = 1, writes = 0, bytes = 0): number {
    this.#totalCount += count
    let item = this.#items.get(key)
    if (item === undefined) {
      if (this.#items.size >= this.capacity) this.#purge()
      item = { key, count: 0, writes: 0, bytes: 0, error: this.#offset }
      this.#items.set(key, item)
    }
    item.count += count
    item.writes += writes
    item.bytes += bytes
    return item.count
  }

  get(key: string): Readonly<TopKItem> | undefined {
    return this.#items.get(key)
  }

  /** Every key that has a counter, in no particular order. */
  items(): IterableIterator<Readonly<TopKItem>> {
    return this.#items.values()
  }

  #purge(): void {
    const held = new Float64Array(this.#items.size)
    let at = 0
    for (const item of this.#items.values()) held[at++] = item.count + item.error - this.#offset
    held.sort()
    // The lower middle one: at least half of the counters are no higher, and at least half no lower.
    this.#offset += held[(held.length - 1) >>> 1]!
    for (const item of this.#items.values()) {
      if (item.count + item.error <= this.#offset) this.#items.delete(item.key)
    }
  }
}
