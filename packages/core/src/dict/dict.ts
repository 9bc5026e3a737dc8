import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { BucketTable } from './bucket-table.ts'
import { chunkMask, chunkShift, EntryPool } from './entry-pool.ts'
import { hashBytes } from './hash-bytes.ts'
import { KeyArena, maxKeyBytes, pageBytes } from './key-arena.ts'

/** What a dict holds for each key, and its limits. */
export interface DictOptions {
  /** 32-bit words of payload in each entry. @default 0 */
  readonly payloadWords?: number
  /** Maximum memory of tables, entries and keys together. @default 1 GiB */
  readonly maxBytes?: number
  /** Buckets of the first table; a power of two. The dict never shrinks below it. @default 1024 */
  readonly initialBuckets?: number
  /** A secret whole number below 2^53 that makes the hash unpredictable to whoever chooses the keys. @default 0 */
  readonly hashSeed?: number
}

/** Words of an entry before its payload. */
const headWords = 3
const hashWord = 1
const refWord = 2

const maxLoad = 1
const minLoad = 1 / 8
const bucketsPerStep = 8
const blocksPerStep = 8
const maxBuckets = 2 ** 30
/** The most hashes that one `preload` takes. */
export const maxPreload = 64
const preloadEntries = new Int32Array(maxPreload)

const noTable = new BucketTable(0)

/**
 * A hash table for millions of byte keys that never stops the process: the *progressive dict*.
 *
 * A V8 `Map` that grows to ten million string keys copies its whole table every time it doubles, and blocks the event
 * loop for over a second when it does; it also ends at 2^24 entries, and every key is an object for the garbage
 * collector to visit. This dict does what Redis' own `dict.c` does instead. There are **two tables**, one of which is
 * usually empty. When the load passes a limit, the second is created with twice the buckets, and from then on **every
 * operation moves a few buckets** from the first to the second, until the first is empty and the second takes its
 * place. No operation ever does more than a constant amount of that work. (`dict.c` must also bound its walk over empty
 * buckets; here a step *is* a number of buckets, empty or not.) Unlike in `dict.c`, a key has exactly one place at any
 * time: its bucket in the first table if that has not been moved yet, otherwise its bucket in the second. So a look-up
 * walks one chain, an insertion may still go to the first table, and both tables can be allocated and freed piece by
 * piece (`BucketTable`).
 *
 * Layout. Entries are in chunks of 16,384, and an entry is a run of 32-bit words:
 *
 *     word   0      1      2        3 …
 *            next   hash   key ref  the user's own words (`payloadWords`)
 *
 * One run instead of a column per field, because a look-up in a table larger than the CPU's cache pays for cache lines
 * and nothing else: with thirteen words of payload an entry is one line of 64 bytes. Keys are in a `KeyArena`, which is
 * cleaned a few blocks per operation in the same way.
 *
 * Entries never move. The **index of an entry is dense and stable** until the entry is deleted; rehashing relinks
 * chains but touches no index. That makes iteration safe with no fingerprint, no pausing and no reverse-binary cursor:
 * walk the indices (`next`). An entry that exists during the whole walk is seen exactly once; one that is added or
 * deleted meanwhile is seen at most once. A freed index is reused, lowest chunk first, so that high chunks empty out
 * and are freed.
 *
 * Limitations. It does not shrink below its initial size. Chains are walked without a limit: as long as the `hashSeed`
 * is secret (`hashBytes`), their length is what chance gives, whatever keys an attacker chooses; the longest chain of a
 * million keys at a load of 1 is about ten. Servers pass a random seed. Memory is bounded by `maxBytes`: an insertion
 * that would exceed it is refused (-1) and the caller decides which key to drop; if only the doubling of the table
 * would exceed it, chains get longer instead. Memory is freed by the garbage collector, so the bound is on what is
 * reachable.
 */
export class Dict {
  readonly payloadWords: number
  /** May be set to more than fits or to less than it holds; then nothing is added until enough has been deleted. */
  maxBytes: number
  readonly hashSeed: number
  readonly #words: Int32Array[]
  readonly #floats: Float32Array[]
  readonly #stride: number
  readonly #entries: EntryPool
  readonly #arena = new KeyArena()
  readonly #initialBuckets: number
  #table: BucketTable
  /** The table being filled while rehashing, else `noTable`. */
  #nextTable: BucketTable = noTable
  /** Buckets of `#table` below this one have been moved. */
  #rehashAt = 0
  #wasInserted = false

  constructor(options: DictOptions = {}) {
    const { payloadWords = 0, maxBytes = 2 ** 30, initialBuckets = 1024, hashSeed = 0 } = options
    if (!Number.isInteger(payloadWords) || payloadWords < 0 || payloadWords > 1024) {
      throw new InvalidOptionError('payloadWords', payloadWords, 'a whole number from 0 to 1024')
    }
    if (!Number.isInteger(Math.log2(initialBuckets)) || initialBuckets < 4 || initialBuckets > maxBuckets) {
      throw new InvalidOptionError('initialBuckets', initialBuckets, 'a power of two from 4 to 2^30')
    }
    this.payloadWords = payloadWords
    this.maxBytes = maxBytes
    this.hashSeed = hashSeed
    this.#stride = headWords + payloadWords
    this.#entries = new EntryPool(this.#stride)
    this.#words = this.#entries.words
    this.#floats = this.#entries.floats
    this.#initialBuckets = initialBuckets
    this.#table = new BucketTable(initialBuckets)
    const smallest = initialBuckets * 4 + this.#entries.chunkBytes + 2 * pageBytes
    if (!(maxBytes >= smallest)) throw new InvalidOptionError('maxBytes', maxBytes, `at least ${smallest}`)
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size
  }

  /** Memory of tables, entries and keys; tables count in full, although they are allocated and freed in pieces. */
  get bytes(): number {
    return (this.#table.length + this.#nextTable.length) * 4 + this.#entries.bytes + this.#arena.bytes
  }

  /** True when a caller that makes room for new keys should start doing so: insertions may soon be refused. */
  get isNearlyFull(): boolean {
    return this.bytes > this.maxBytes * 0.9 - this.#entries.chunkBytes - 2 * pageBytes
  }

  get isRehashing(): boolean {
    return this.#nextTable !== noTable
  }

  get bucketCount(): number {
    return Math.max(this.#table.length, this.#nextTable.length)
  }

  /** True if the last `findOrInsert` created the entry. */
  get wasInserted(): boolean {
    return this.#wasInserted
  }

  hash(bytes: Uint8Array, start: number, end: number): number {
    return hashBytes(bytes, start, end, this.hashSeed)
  }

  /** The index of the key in `bytes` from `start` to `end`, or -1; `hash` is the result of `hash()` for it. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    if (this.#nextTable !== noTable) this.#rehashStep(bucketsPerStep)
    const stride = this.#stride
    let entry = this.#headOf(hash)
    while (entry !== 0) {
      const index = entry - 1
      const words = this.#words[index >>> chunkShift]!
      const at = (index & chunkMask) * stride
      if (words[at + hashWord] === hash && this.#arena.equals(words[at + refWord]! >>> 0, bytes, start, end)) {
        return index
      }
      entry = words[at]!
    }
    return -1
  }

  /**
   * Brings whatever look-ups of these hashes will touch into the CPU's cache; changes nothing. A look-up in a large
   * dict waits for memory three times in sequence (bucket, entry, key). Here each of the three is a loop of independent
   * loads, which the CPU overlaps: look-ups of a preloaded batch take half the time (`npm run -s bench -- heat`).
   */
  preload(hashes: Int32Array, count: number): number {
    const words = this.#words
    const stride = this.#stride
    const entries = preloadEntries
    for (let nth = 0; nth < count; nth++) entries[nth] = this.#headOf(hashes[nth]!)
    let sum = 0
    for (let nth = 0; nth < count; nth++) {
      const index = entries[nth]! - 1
      if (index < 0) continue
      const chunk = words[index >>> chunkShift]!
      const at = (index & chunkMask) * stride
      // If it is not the wanted entry, that is most likely the next one in the chain.
      const isWanted = chunk[at + hashWord] === hashes[nth]
      entries[nth] = isWanted ? index + 1 : chunk[at]!
      sum ^= chunk[at + stride - 1]!
    }
    for (let nth = 0; nth < count; nth++) {
      const index = entries[nth]! - 1
      if (index < 0) continue
      const ref = words[index >>> chunkShift]![(index & chunkMask) * stride + refWord]! >>> 0
      sum ^= this.#arena.touch(ref)
    }
    return sum
  }

  /** The index of the key, which is added with a zeroed payload if it is missing; -1 if memory is full. */
  findOrInsert(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const found = this.find(bytes, start, end, hash)
    this.#wasInserted = false
    if (found >= 0) return found
    if (end - start > maxKeyBytes) return -1
    if (!this.#hasRoomFor(end - start)) return -1
    this.#growIfLoaded()
    const index = this.#entries.take()
    const words = this.wordsOf(index)
    const at = (index & chunkMask) * this.#stride
    const table = this.#tableOf(hash)
    const bucket = hash & (table.length - 1)
    words[at] = table.get(bucket)
    words[at + hashWord] = hash
    words[at + refWord] = this.#arena.add(bytes, start, end)
    table.set(bucket, index + 1)
    this.#wasInserted = true
    return index
  }

  /** Deletes the entry at an index that is in use. */
  deleteAt(index: number): void {
    const words = this.wordsOf(index)
    const at = (index & chunkMask) * this.#stride
    this.#unlink(index, words[at]!, words[at + hashWord]!)
    this.#arena.free(words[at + refWord]! >>> 0)
    this.#entries.free(index)
    if (this.#nextTable !== noTable) this.#rehashStep(bucketsPerStep)
    else this.#shrinkIfSparse()
    this.#cleanStep()
  }

  /**
   * Deletes everything at once and returns to the initial size. Unlike everything else here, this takes time
   * proportional to the size.
   */
  clear(): void {
    this.#entries.clear()
    this.#arena.clear()
    this.#table = new BucketTable(this.#initialBuckets)
    this.#nextTable = noTable
    this.#rehashAt = 0
  }

  /** The first index in use at or after `from`, or -1: a safe cursor for walks in steps. */
  next(from: number): number {
    return this.#entries.next(from)
  }

  /** An index in use near the place given by a random whole number; -1 if there is none. */
  pick(random: number): number {
    return this.#entries.pick(random)
  }

  /** A view of an entry's key, valid until the next change of the dict. */
  keyAt(index: number): Uint8Array {
    return this.#arena.view(this.#words[index >>> chunkShift]![(index & chunkMask) * this.#stride + refWord]! >>> 0)
  }

  /** The words that hold the entry; its payload begins at `payloadAt(index)`. */
  wordsOf(index: number): Int32Array {
    return this.#words[index >>> chunkShift]!
  }

  /** The same words as floats: a payload word may be either. */
  floatsOf(index: number): Float32Array {
    return this.#floats[index >>> chunkShift]!
  }

  payloadAt(index: number): number {
    return (index & chunkMask) * this.#stride + headWords
  }

  /**
   * Signals that memory is short: keys are packed until dead ones are an eighth of the live ones instead of a half, at
   * the cost of more moves per deletion.
   */
  packTightly(): void {
    this.#arena.isTight = true
  }

  /** Moves up to `buckets` buckets, for idle time; false once there is nothing left to move. */
  rehash(buckets: number): boolean {
    if (this.#nextTable !== noTable) this.#rehashStep(buckets)
    return this.#nextTable !== noTable
  }

  /** The table that currently holds this hash. */
  #tableOf(hash: number): BucketTable {
    return (hash & (this.#table.length - 1)) < this.#rehashAt ? this.#nextTable : this.#table
  }

  #headOf(hash: number): number {
    const table = this.#tableOf(hash)
    return table.get(hash & (table.length - 1))
  }

  #unlink(index: number, next: number, hash: number): void {
    const table = this.#tableOf(hash)
    const bucket = hash & (table.length - 1)
    let entry = table.get(bucket)
    if (entry === index + 1) {
      table.set(bucket, next)
      return
    }
    while (entry !== 0) {
      const words = this.#words[(entry - 1) >>> chunkShift]!
      const at = ((entry - 1) & chunkMask) * this.#stride
      entry = words[at]!
      if (entry === index + 1) {
        words[at] = next
        return
      }
    }
  }

  #growIfLoaded(): void {
    if (this.#nextTable !== noTable || this.#entries.size < this.#table.length * maxLoad) return
    const buckets = this.#table.length * 2
    if (buckets <= maxBuckets && this.bytes + buckets * 4 <= this.maxBytes) this.#nextTable = new BucketTable(buckets)
  }

  #shrinkIfSparse(): void {
    if (this.#table.length <= this.#initialBuckets || this.#entries.size >= this.#table.length * minLoad) return
    // Shrinks at a quarter: the load afterwards is at most a half, so that a dict at the limit does not oscillate
    // between two sizes.
    this.#nextTable = new BucketTable(Math.max(this.#initialBuckets, this.#table.length / 4))
  }

  #rehashStep(buckets: number): void {
    const from = this.#table
    const to = this.#nextTable
    const mask = to.length - 1
    const stride = this.#stride
    const first = this.#rehashAt
    const end = Math.min(from.length, first + buckets)
    for (let bucket = first; bucket < end; bucket++) {
      let entry = from.get(bucket)
      while (entry !== 0) {
        const words = this.#words[(entry - 1) >>> chunkShift]!
        const at = ((entry - 1) & chunkMask) * stride
        const next = words[at]!
        const target = words[at + hashWord]! & mask
        words[at] = to.get(target)
        to.set(target, entry)
        entry = next
      }
    }
    this.#rehashAt = end
    from.releaseBetween(first, end)
    if (end === from.length) {
      this.#table = to
      this.#nextTable = noTable
      this.#rehashAt = 0
    }
  }

  /** True if an entry and a key of this length fit within the bound. */
  #hasRoomFor(keyLength: number): boolean {
    const needsPage = !this.#arena.hasRoomFor(keyLength)
    const wanted = (needsPage ? pageBytes : 0) + (this.#entries.needsChunk ? this.#entries.chunkBytes : 0)
    if (wanted === 0) return true
    // One page is kept in reserve for cleaning others.
    return this.bytes + wanted + pageBytes <= this.maxBytes && !(needsPage && this.#arena.isFull)
  }

  /** Moves a few live keys out of the arena's dirtiest page. */
  #cleanStep(): void {
    for (let count = 0; count < blocksPerStep; count++) {
      const ref = this.#arena.nextToClean()
      if (ref === 0) return
      this.#moveKey(ref)
    }
  }

  #moveKey(ref: number): void {
    const key = this.#arena.view(ref)
    const index = this.find(key, 0, key.length, this.hash(key, 0, key.length))
    if (index < 0) return
    const words = this.#words[index >>> chunkShift]!
    const at = (index & chunkMask) * this.#stride + refWord
    if (words[at]! >>> 0 !== ref) return
    words[at] = this.#arena.add(key, 0, key.length)
    this.#arena.free(ref)
  }
}
