import type { EvictionPolicy } from './eviction-policy.ts'
import { none, SlotLists } from './slot-lists.ts'

/**
 * LFU with dynamic aging (LFU-DA, Arlitt et al. 2000): evicts the least-read entry, but lets old popularity fade.
 *
 * Plain LFU keeps a key that was read a million times last week forever. Here a slot's rank is its reads plus the
 * cache's age when it was inserted, and the age is the rank of the last evicted slot. A new key therefore starts level
 * with the lowest of the remaining ones, and formerly popular keys are overtaken.
 *
 *     rank   4        5        9            buckets by rising rank, linked
 *            a ─ c    b        d ─ e        in a bucket, newest first
 *
 * Slots of one rank share a bucket. A hit moves the slot to the next bucket, which is either its neighbour or created
 * between the two. A new key's rank (age + 1) belongs in the first bucket, the second, or before both, because no
 * remaining rank is below the age. So every step is O(1). A bucket is a list number; there are at most as many
 * non-empty buckets as slots, plus one while a slot moves.
 */
export class LfuPolicy implements EvictionPolicy {
  readonly #lists: SlotLists
  readonly #bucketOf: Int32Array
  readonly #rank: Float64Array
  readonly #nextBucket: Int32Array
  readonly #previousBucket: Int32Array
  readonly #freeBuckets: Int32Array
  #freeCount = 0
  #firstBucket = none
  #age = 0

  constructor(capacity: number) {
    const buckets = capacity + 1
    this.#lists = new SlotLists(capacity, buckets)
    this.#bucketOf = new Int32Array(capacity)
    this.#rank = new Float64Array(buckets)
    this.#nextBucket = new Int32Array(buckets)
    this.#previousBucket = new Int32Array(buckets)
    this.#freeBuckets = new Int32Array(buckets)
    this.clear()
  }

  insert(slot: number): void {
    const rank = this.#age + 1
    let before = none
    let bucket = this.#firstBucket
    while (bucket !== none && this.#rank[bucket]! < rank) {
      before = bucket
      bucket = this.#nextBucket[bucket]!
    }
    this.#put(slot, rank, before)
  }

  touch(slot: number): void {
    const bucket = this.#bucketOf[slot]!
    const rank = this.#rank[bucket]! + 1
    this.#lists.remove(bucket, slot)
    this.#put(slot, rank, bucket)
    this.#freeIfEmpty(bucket)
  }

  remove(slot: number): void {
    const bucket = this.#bucketOf[slot]!
    this.#lists.remove(bucket, slot)
    this.#freeIfEmpty(bucket)
  }

  evict(): number {
    const bucket = this.#firstBucket
    const slot = this.#lists.tail(bucket)
    this.#age = this.#rank[bucket]!
    this.#lists.remove(bucket, slot)
    this.#freeIfEmpty(bucket)
    return slot
  }

  clear(): void {
    this.#lists.clear()
    this.#firstBucket = none
    this.#age = 0
    this.#freeCount = this.#freeBuckets.length
    for (let index = 0; index < this.#freeCount; index++) this.#freeBuckets[index] = index
  }

  /** Puts the slot in the bucket of this rank, which comes after `before` or is created there. */
  #put(slot: number, rank: number, before: number): void {
    let bucket = before === none ? this.#firstBucket : this.#nextBucket[before]!
    if (bucket === none || this.#rank[bucket] !== rank) bucket = this.#makeBucket(rank, before, bucket)
    this.#bucketOf[slot] = bucket
    this.#lists.addHead(bucket, slot)
  }

  #makeBucket(rank: number, before: number, after: number): number {
    const bucket = this.#freeBuckets[--this.#freeCount]!
    this.#rank[bucket] = rank
    this.#previousBucket[bucket] = before
    this.#nextBucket[bucket] = after
    if (before === none) this.#firstBucket = bucket
    else this.#nextBucket[before] = bucket
    if (after !== none) this.#previousBucket[after] = bucket
    return bucket
  }

  #freeIfEmpty(bucket: number): void {
    if (this.#lists.size(bucket) > 0) return
    const before = this.#previousBucket[bucket]!
    const after = this.#nextBucket[bucket]!
    if (before === none) this.#firstBucket = after
    else this.#nextBucket[before] = after
    if (after !== none) this.#previousBucket[after] = before
    this.#freeBuckets[this.#freeCount++] = bucket
  }
}
