import type { EvictionPolicy } from './eviction-policy.ts'
import { none, SlotLists } from './slot-lists.ts'

const small = 0
const main = 1
const maxFrequency = 3

/**
 * S3-FIFO (Yang et al., SOSP 2023): three FIFO queues instead of one sorted list.
 *
 *     new key ──► small (20 %) ──read meanwhile──► main (80 %) ──never read──► out
 *                     └────────── else ──► out, its fingerprint to the ghost
 *     new key whose fingerprint is in the ghost ──────► main
 *
 * Most keys of a real workload are read once; they pass through the small queue and never push a key out of the main
 * one. A hit counts up to three in a byte and moves nothing. A key due for eviction from main stays for another round
 * for each counted read. The ghost remembers what left the small queue, without its value: a key that returns soon was
 * evicted too early, so it goes straight to main.
 *
 * The paper has a small queue of 10 % and requires two reads in it. Workloads that read keys in a burst and then drop
 * them lose by that: on a trace of application queries it scored 1.8 points below LRU at a cache of 1 % of the keys,
 * and 4 at 0.3 %. With a larger queue and one read it beats LRU at every size we tried, while Zipf workloads, the
 * paper's case, lose one of the ten points that they gain (`bench/cache.ts --part=traces` at other sizes).
 *
 * The ghost is a direct-mapped table of 32-bit fingerprints with the insertion number: an entry counts while at most
 * `capacity × 0.8` keys have entered the ghost after it. A collision forgets the older fingerprint or (once in some
 * four billion pairs) mistakes a new key for a returning one. Either costs one misplaced key, never a wrong value.
 */
export class S3FifoPolicy implements EvictionPolicy {
  readonly #lists: SlotLists
  readonly #frequency: Uint8Array
  readonly #queue: Uint8Array
  readonly #fingerprint: Uint32Array
  readonly #smallCapacity: number
  readonly #ghostCapacity: number
  readonly #ghostFingerprint: Uint32Array
  /** Modulo 2³²; 0 for none. */
  readonly #ghostInserted: Uint32Array
  #ghostCount = 0

  constructor(capacity: number) {
    this.#lists = new SlotLists(capacity, 2)
    this.#frequency = new Uint8Array(capacity)
    this.#queue = new Uint8Array(capacity)
    this.#fingerprint = new Uint32Array(capacity)
    this.#smallCapacity = Math.max(1, Math.floor(capacity / 5))
    this.#ghostCapacity = Math.max(1, capacity - this.#smallCapacity)
    let tableSize = 16
    while (tableSize < this.#ghostCapacity * 2) tableSize *= 2
    this.#ghostFingerprint = new Uint32Array(tableSize)
    this.#ghostInserted = new Uint32Array(tableSize)
  }

  insert(slot: number, key: string): void {
    const fingerprint = hashOf(key)
    this.#fingerprint[slot] = fingerprint
    this.#frequency[slot] = 0
    this.#put(this.#isGhost(fingerprint) ? main : small, slot)
  }

  touch(slot: number): void {
    if (this.#frequency[slot]! < maxFrequency) this.#frequency[slot]!++
  }

  remove(slot: number): void {
    this.#lists.remove(this.#queue[slot]!, slot)
  }

  evict(): number {
    if (this.#lists.size(small) >= this.#smallCapacity || this.#lists.size(main) === 0) {
      const slot = this.#evictSmall()
      if (slot !== none) return slot
    }
    return this.#evictMain()
  }

  clear(): void {
    this.#lists.clear()
    this.#ghostInserted.fill(0)
    this.#ghostCount = 0
  }

  /** Moves read entries to main until it finds one that was not read; `none` if all were. */
  #evictSmall(): number {
    for (let slot = this.#lists.tail(small); slot !== none; slot = this.#lists.tail(small)) {
      this.#lists.remove(small, slot)
      if (this.#frequency[slot] === 0) {
        this.#remember(this.#fingerprint[slot]!)
        return slot
      }
      this.#frequency[slot] = 0
      this.#put(main, slot)
    }
    return none
  }

  #evictMain(): number {
    for (;;) {
      const slot = this.#lists.tail(main)
      this.#lists.remove(main, slot)
      if (this.#frequency[slot] === 0) return slot
      this.#frequency[slot]!--
      this.#put(main, slot)
    }
  }

  #put(queue: number, slot: number): void {
    this.#queue[slot] = queue
    this.#lists.addHead(queue, slot)
  }

  #remember(fingerprint: number): void {
    const at = fingerprint & (this.#ghostFingerprint.length - 1)
    this.#ghostFingerprint[at] = fingerprint
    this.#ghostCount = (this.#ghostCount + 1) >>> 0
    this.#ghostInserted[at] = this.#ghostCount
  }

  #isGhost(fingerprint: number): boolean {
    const at = fingerprint & (this.#ghostFingerprint.length - 1)
    const inserted = this.#ghostInserted[at]!
    const age = (this.#ghostCount - inserted) >>> 0
    return inserted !== 0 && this.#ghostFingerprint[at] === fingerprint && age < this.#ghostCapacity
  }
}

/** FNV-1a with a final mix, for fingerprints; V8 does not expose the hash that it keeps for a string. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}
