import { none } from './slot-lists.ts'

/** Longer keys are looked up by V8's own hash. */
const longestHashed = 24

/**
 * Finds a cache's slots by their keys.
 *
 * A V8 `Map` does not reuse the place of a deleted key: in a full cache, where a key leaves for each one added, it
 * copies itself again and again. So short keys are chained by our own hash, in typed arrays that never grow:
 *
 *     heads[hash & mask] ──► slot ──next──► slot ──next──► none        hashes[slot]: compared before the key is
 *
 * Our hash takes a step for each character, whereas V8 stores a string's hash with it. Beyond some 30 characters that
 * costs more than the `Map` does (measured by `bench/cache.ts --part=policy` with longer keys), so longer keys live in
 * a `Map`. The seed prevents anyone who can choose keys from choosing their buckets.
 *
 * A failed look-up is usually followed by an insertion of the same key, so the last such key and its hash are
 * remembered.
 */
export class SlotIndex {
  readonly #keys: (string | undefined)[] = []
  readonly #hashes: Int32Array
  readonly #next: Int32Array
  readonly #heads: Int32Array
  readonly #mask: number
  readonly #seed = Math.trunc(Math.random() * 2 ** 31)
  readonly #long = new Map<string, number>()
  #size = 0
  #missed: string | undefined
  #missedHash = 0

  constructor(capacity: number) {
    let buckets = 16
    while (buckets < capacity) buckets *= 2
    this.#mask = buckets - 1
    this.#heads = new Int32Array(buckets).fill(none)
    this.#hashes = new Int32Array(capacity)
    this.#next = new Int32Array(capacity)
  }

  get size(): number {
    return this.#size
  }

  /** The slot of a key, or `none`. */
  find(key: string): number {
    if (key === this.#missed) return none
    if (key.length > longestHashed) return this.#long.get(key) ?? none
    const hash = this.#hashOf(key)
    const hashes = this.#hashes
    const next = this.#next
    for (let slot = this.#heads[hash & this.#mask]!; slot !== none; slot = next[slot]!) {
      if (hashes[slot] === hash && this.#keys[slot] === key) return slot
    }
    this.#missed = key
    this.#missedHash = hash
    return none
  }

  /** The key of a filled slot. */
  keyOf(slot: number): string {
    return this.#keys[slot]!
  }

  /** Adds a key that is not in the index to a free slot. */
  add(key: string, slot: number): void {
    this.#size++
    this.#keys[slot] = key
    if (key.length > longestHashed) {
      this.#long.set(key, slot)
      return
    }
    const hash = key === this.#missed ? this.#missedHash : this.#hashOf(key)
    this.#missed = undefined
    const bucket = hash & this.#mask
    this.#hashes[slot] = hash
    this.#next[slot] = this.#heads[bucket]!
    this.#heads[bucket] = slot
  }

  /** Frees a filled slot. */
  remove(slot: number): void {
    const key = this.#keys[slot]!
    this.#size--
    this.#keys[slot] = undefined
    if (key.length > longestHashed) {
      this.#long.delete(key)
      return
    }
    const next = this.#next
    const bucket = this.#hashes[slot]! & this.#mask
    const head = this.#heads[bucket]!
    if (head === slot) {
      this.#heads[bucket] = next[slot]!
      return
    }
    let before = head
    while (next[before] !== slot) before = next[before]!
    next[before] = next[slot]!
  }

  clear(): void {
    this.#keys.length = 0
    this.#long.clear()
    this.#heads.fill(none)
    this.#size = 0
  }

  *keys(): IterableIterator<string> {
    for (const key of this.#keys) if (key !== undefined) yield key
  }

  /** FNV-1a from the seed, with a final mix; only the low bits select the bucket. */
  #hashOf(key: string): number {
    let hash = this.#seed
    for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
    return hash ^ (hash >>> 13)
  }
}
