import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { hashBytes } from './hash-bytes.ts'
import { KeyArena, maxKeyBytes, pageBytes } from './key-arena.ts'

/**
 * A hash table for millions of byte keys that never stops the process: the *progressive dict*.
 *
 * A V8 `Map` that grows to ten million string keys copies its whole table every time it doubles, and holds the event
 * loop for over a second when it does; it also ends at 2^24 entries, and every key is an object for the garbage
 * collector to visit. This dict does what Redis' own `dict.c` does instead. There are **two tables**. Usually one is
 * empty. When the load passes a limit, the second is made with twice the buckets, and from then on **every operation
 * moves a few buckets** from the first to the second, until the first is empty and the second takes its place. No
 * operation ever does more than a constant amount of that work. (`dict.c` must also bound its walk over empty buckets;
 * here a step *is* a number of buckets, empty or not.)
 *
 * Layout. A table is an `Int32Array` of chain heads: 0 is an empty bucket, n + 1 is entry n. Fresh typed arrays are
 * zero, and large ones come from the system as untouched pages, so making one takes microseconds, not a copy. Entries
 * lie in chunks of 16,384, and an entry is one run of 32-bit words:
 *
 *     word   0      1      2        3 …
 *            next   hash   key ref  the user's own words (`payloadWords`)
 *
 * One run instead of a column per field, since a look-up in a table larger than the CPU's cache pays for cache lines
 * and nothing else: with thirteen words of payload an entry is one line of 64 bytes. Users with colder data hold it in
 * `Column`s beside the dict, at the same index. Keys lie in a `KeyArena`, which is cleaned a few blocks per operation
 * in the same manner.
 *
 * Entries never move. The **index of an entry is dense and stable** until the entry is deleted; rehashing relinks
 * chains but touches no index. That makes iteration safe with no fingerprint, no pausing and no reverse-binary cursor:
 * walk the indices (`next`). What is there during the whole walk is seen exactly once; what comes or goes meanwhile is
 * seen at most once. A freed index is reused, lowest chunk first, so that high chunks run empty and go back to the
 * system.
 *
 * What it does not do. It does not shrink below its first size. A chain is walked without limit: a stranger who knows
 * the seed could build a long one, so servers pass a random `hashSeed`. Memory is bounded by `maxBytes`: an insertion
 * that would pass it is refused (-1) and the caller decides whom to forget; where only the doubling of the table would
 * pass it, chains get longer instead. Tables are freed by the garbage collector, so the bound is on what is reachable.
 */
export interface DictOptions {
  /** 32-bit words that each entry has for its user. @default 0 */
  readonly payloadWords?: number
  /** Memory that tables, entries and keys may take together. @default 1 GiB */
  readonly maxBytes?: number
  /** Buckets of the first table; a power of two. The dict never shrinks below it. @default 1024 */
  readonly initialBuckets?: number
  /** Makes the hash unpredictable to whoever chooses the keys. @default 0 */
  readonly hashSeed?: number
}

/** Words of an entry before its payload. */
const headWords = 3
const hashWord = 1
const refWord = 2

export const chunkShift = 14
const chunkEntries = 1 << chunkShift
const chunkMask = chunkEntries - 1

const maxLoad = 1
const minLoad = 1 / 8
const bucketsPerStep = 8
const blocksPerStep = 8
const maxBuckets = 2 ** 30
/** The most hashes that `preload` takes at once. */
export const maxPreload = 64
const preloadEntries = new Int32Array(maxPreload)

const noTable = new Int32Array(0)
const noWords = new Int32Array(0)
const noFloats = new Float32Array(0)

/** Something beside the dict that is indexed like it and follows its deletions; see `Column`. */
export interface DictFollower {
  /** The entry is gone and its index may be given to another key. */
  forget(index: number): void
  /** None of the chunk's entries exist. */
  releaseChunk(chunk: number): void
}

/** A progressively rehashed dict from byte keys to dense indices. */
export class Dict {
  readonly payloadWords: number
  readonly maxBytes: number
  readonly hashSeed: number
  /** The chunks' words, for users on a hot path; see `wordsOf` and `payloadAt`. */
  readonly words: Int32Array[] = []
  /** The same words seen as floats. */
  readonly floats: Float32Array[] = []
  readonly #stride: number
  readonly #initialBuckets: number
  readonly #arena = new KeyArena()
  #table: Int32Array
  /** The table being filled while rehashing, else `noTable`. */
  #nextTable: Int32Array = noTable
  /** Buckets of `#table` below this are moved. */
  #rehashAt = 0
  #size = 0
  /** Per chunk: head of its free list (index + 1), entries ever used, and entries alive. */
  readonly #freeHeads: number[] = []
  readonly #used: number[] = []
  readonly #live: number[] = []
  /** No chunk below this has room. */
  #roomFrom = 0
  #chunkCount = 0
  readonly #followers: DictFollower[] = []
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
    this.#initialBuckets = initialBuckets
    this.#table = new Int32Array(initialBuckets)
    const smallest = this.bytes + this.#chunkBytes + 2 * pageBytes
    if (!(maxBytes >= smallest)) throw new InvalidOptionError('maxBytes', maxBytes, `at least ${smallest}`)
  }

  /** Entries. */
  get size(): number {
    return this.#size
  }

  /** Every index is below this. */
  get indexLimit(): number {
    return this.words.length << chunkShift
  }

  /** Memory of the tables, entries and keys. */
  get bytes(): number {
    return (this.#table.length + this.#nextTable.length) * 4 + this.#chunkCount * this.#chunkBytes + this.#arena.bytes
  }

  /** True where a user who wants to forget something for each new key should begin to: insertions may soon be refused. */
  get isNearlyFull(): boolean {
    return this.bytes > this.maxBytes * 0.9 - this.#chunkBytes - 2 * pageBytes
  }

  get isRehashing(): boolean {
    return this.#nextTable !== noTable
  }

  get bucketCount(): number {
    return Math.max(this.#table.length, this.#nextTable.length)
  }

  /** True where the last `findOrInsert` made the entry. */
  get wasInserted(): boolean {
    return this.#wasInserted
  }

  hash(bytes: Uint8Array, start: number, end: number): number {
    return hashBytes(bytes, start, end, this.hashSeed)
  }

  /** The index of the key that stands in `bytes` from `start` to `end`, or -1; `hash` is what `hash()` gives for it. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    if (this.#nextTable !== noTable) this.#rehashStep(bucketsPerStep)
    const bucket = hash & (this.#table.length - 1)
    if (bucket >= this.#rehashAt) {
      const found = this.#findInChain(this.#table[bucket]!, bytes, start, end, hash)
      if (found >= 0) return found
    }
    if (this.#nextTable === noTable) return -1
    return this.#findInChain(this.#nextTable[hash & (this.#nextTable.length - 1)]!, bytes, start, end, hash)
  }

  /**
   * Brings what look-ups of these hashes will touch into the CPU's cache; changes nothing. A look-up in a large dict
   * waits for memory three times, one wait after the other (bucket, entry, key). Here each of the three is a loop of
   * loads that do not depend on each other, which the CPU overlaps: look-ups of a batch that was preloaded take half
   * the time (`npm run -s bench -- heat`).
   */
  preload(hashes: Int32Array, count: number): number {
    const { words } = this
    const stride = this.#stride
    const entries = preloadEntries
    const table = this.#table
    const nextTable = this.#nextTable
    for (let nth = 0; nth < count; nth++) {
      const bucket = hashes[nth]! & (table.length - 1)
      const isMoved = bucket < this.#rehashAt
      entries[nth] = isMoved ? nextTable[hashes[nth]! & (nextTable.length - 1)]! : table[bucket]!
    }
    let sum = 0
    for (let nth = 0; nth < count; nth++) {
      const index = entries[nth]! - 1
      if (index < 0) continue
      const chunk = words[index >>> chunkShift]!
      const at = (index & chunkMask) * stride
      // Where it is not the wanted entry, it is most likely the one after it in the chain.
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

  /** The index of the key, which is added with a payload of zeros where it is not there; -1 where memory is full. */
  findOrInsert(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const found = this.find(bytes, start, end, hash)
    this.#wasInserted = false
    if (found >= 0) return found
    if (end - start > maxKeyBytes) return -1
    const chunk = this.#chunkWithRoom(end - start)
    if (chunk < 0) return -1
    this.#growIfLoaded()
    const index = this.#takeIndex(chunk)
    const words = this.words[chunk]!
    const at = (index & chunkMask) * this.#stride
    const table = this.#nextTable === noTable ? this.#table : this.#nextTable
    const bucket = hash & (table.length - 1)
    words[at] = table[bucket]!
    words[at + hashWord] = hash
    words[at + refWord] = this.#arena.add(bytes, start, end)
    table[bucket] = index + 1
    this.#size++
    this.#wasInserted = true
    return index
  }

  /** Deletes the entry of a key; false where it is not there. */
  delete(bytes: Uint8Array, start: number, end: number, hash: number): boolean {
    const index = this.find(bytes, start, end, hash)
    if (index >= 0) this.deleteAt(index)
    return index >= 0
  }

  /** Deletes the entry at an index that is in use. */
  deleteAt(index: number): void {
    const chunk = index >>> chunkShift
    const words = this.words[chunk]!
    const at = (index & chunkMask) * this.#stride
    this.#unlink(index, words[at]!, words[at + hashWord]!)
    this.#arena.free(words[at + refWord]! >>> 0)
    words.fill(0, at, at + this.#stride)
    words[at] = this.#freeHeads[chunk]!
    this.#freeHeads[chunk] = index + 1
    this.#live[chunk]!--
    this.#size--
    for (const follower of this.#followers) follower.forget(index)
    if (chunk < this.#roomFrom) this.#roomFrom = chunk
    if (this.#live[chunk] === 0) this.#releaseChunk(chunk)
    if (this.#nextTable !== noTable) this.#rehashStep(bucketsPerStep)
    else this.#shrinkIfSparse()
    this.#cleanStep()
  }

  /** Forgets everything at once and goes back to the first size; unlike all else here it takes time by its size. */
  clear(): void {
    for (let chunk = 0; chunk < this.words.length; chunk++) {
      if (this.words[chunk] === noWords) continue
      if (chunk > 0) {
        this.#live[chunk] = 0
        this.#releaseChunk(chunk)
        continue
      }
      // The first chunk is kept: a dict that is cleared over and over asks the system for nothing.
      this.words[0]!.fill(0, 0, this.#used[0]! * this.#stride)
      for (const follower of this.#followers) follower.releaseChunk(0)
      this.#freeHeads[0] = this.#used[0] = this.#live[0] = 0
    }
    this.#arena.clear()
    if (this.#table.length === this.#initialBuckets) this.#table.fill(0)
    else this.#table = new Int32Array(this.#initialBuckets)
    this.#nextTable = noTable
    this.#rehashAt = this.#size = this.#roomFrom = 0
  }

  /** The first index in use at or after `from`, or -1: a safe cursor for walks in steps. */
  next(from: number): number {
    let index = from
    while (index < this.indexLimit) {
      const chunk = index >>> chunkShift
      const used = (chunk << chunkShift) + this.#used[chunk]!
      if (this.#live[chunk]! > 0) {
        const words = this.words[chunk]!
        for (; index < used; index++) if (words[(index & chunkMask) * this.#stride + refWord] !== 0) return index
      }
      index = (chunk + 1) << chunkShift
    }
    return -1
  }

  /** An index in use near a place that a random whole number names; -1 where there is none. */
  pick(random: number): number {
    if (this.#size === 0) return -1
    const chunk = random % this.words.length
    const used = this.#used[chunk]!
    const found = this.next((chunk << chunkShift) + (used === 0 ? 0 : (random >>> 8) % used))
    return found >= 0 ? found : this.next(0)
  }

  /** All indices in use; the dict may change meanwhile. */
  *indices(): Generator<number> {
    for (let index = this.next(0); index >= 0; index = this.next(index + 1)) yield index
  }

  has(index: number): boolean {
    const words = this.words[index >>> chunkShift]
    return words !== undefined && words.length > 0 && words[(index & chunkMask) * this.#stride + refWord] !== 0
  }

  /** A view of an entry's key; it holds until the next change of the dict. */
  keyAt(index: number): Uint8Array {
    return this.#arena.view(this.words[index >>> chunkShift]![(index & chunkMask) * this.#stride + refWord]! >>> 0)
  }

  hashAt(index: number): number {
    return this.words[index >>> chunkShift]![(index & chunkMask) * this.#stride + hashWord]!
  }

  /** The words in which the entry lies; its payload begins at `payloadAt(index)`. */
  wordsOf(index: number): Int32Array {
    return this.words[index >>> chunkShift]!
  }

  /** The same as floats: a payload word is either. */
  floatsOf(index: number): Float32Array {
    return this.floats[index >>> chunkShift]!
  }

  payloadAt(index: number): number {
    return (index & chunkMask) * this.#stride + headWords
  }

  /**
   * Says that memory is short: keys are packed until the dead ones are an eighth of the live ones instead of a half, at
   * the price of more moves per deletion.
   */
  packTightly(): void {
    this.#arena.isTight = true
  }

  /** Lets a column follow the dict's deletions. */
  attach<T extends DictFollower>(follower: T): T {
    this.#followers.push(follower)
    return follower
  }

  /** Moves up to `buckets` buckets, in idle time; false once there is nothing to move. */
  rehash(buckets: number): boolean {
    if (this.#nextTable !== noTable) this.#rehashStep(buckets)
    return this.#nextTable !== noTable
  }

  get #chunkBytes(): number {
    return chunkEntries * this.#stride * 4
  }

  #findInChain(head: number, bytes: Uint8Array, start: number, end: number, hash: number): number {
    const stride = this.#stride
    let entry = head
    while (entry !== 0) {
      const index = entry - 1
      const words = this.words[index >>> chunkShift]!
      const at = (index & chunkMask) * stride
      if (words[at + hashWord] === hash && this.#arena.equals(words[at + refWord]! >>> 0, bytes, start, end)) {
        return index
      }
      entry = words[at]!
    }
    return -1
  }

  #unlink(index: number, next: number, hash: number): void {
    const bucket = hash & (this.#table.length - 1)
    if (bucket >= this.#rehashAt && this.#unlinkFrom(this.#table, bucket, index, next)) return
    this.#unlinkFrom(this.#nextTable, hash & (this.#nextTable.length - 1), index, next)
  }

  #unlinkFrom(table: Int32Array, bucket: number, index: number, next: number): boolean {
    let entry = table[bucket]!
    if (entry === index + 1) {
      table[bucket] = next
      return true
    }
    while (entry !== 0) {
      const words = this.words[(entry - 1) >>> chunkShift]!
      const at = ((entry - 1) & chunkMask) * this.#stride
      if (words[at] === index + 1) {
        words[at] = next
        return true
      }
      entry = words[at]!
    }
    return false
  }

  #growIfLoaded(): void {
    if (this.#nextTable !== noTable || this.#size < this.#table.length * maxLoad) return
    const buckets = this.#table.length * 2
    if (buckets <= maxBuckets && this.bytes + buckets * 4 <= this.maxBytes) this.#nextTable = new Int32Array(buckets)
  }

  #shrinkIfSparse(): void {
    if (this.#table.length <= this.#initialBuckets || this.#size >= this.#table.length * minLoad) return
    // A quarter: the load after is at most a half, so that a dict at the limit does not swing between two sizes.
    this.#nextTable = new Int32Array(Math.max(this.#initialBuckets, this.#table.length / 4))
  }

  #rehashStep(buckets: number): void {
    const from = this.#table
    const to = this.#nextTable
    const mask = to.length - 1
    const stride = this.#stride
    const end = Math.min(from.length, this.#rehashAt + buckets)
    for (let bucket = this.#rehashAt; bucket < end; bucket++) {
      let entry = from[bucket]!
      if (entry === 0) continue
      from[bucket] = 0
      while (entry !== 0) {
        const words = this.words[(entry - 1) >>> chunkShift]!
        const at = ((entry - 1) & chunkMask) * stride
        const next = words[at]!
        const target = words[at + hashWord]! & mask
        words[at] = to[target]!
        to[target] = entry
        entry = next
      }
    }
    this.#rehashAt = end
    if (end < from.length) return
    this.#table = to
    this.#nextTable = noTable
    this.#rehashAt = 0
  }

  /** A chunk with a free entry, where entry and key fit under the bound; else -1. */
  #chunkWithRoom(keyLength: number): number {
    const needsPage = !this.#arena.hasRoomFor(keyLength)
    let wanted = needsPage ? pageBytes : 0
    let chunk = this.#roomFrom
    while (chunk < this.words.length && this.#live[chunk] === chunkEntries) chunk++
    this.#roomFrom = chunk
    const needsChunk = chunk === this.words.length || this.words[chunk] === noWords
    if (needsChunk) wanted += this.#chunkBytes
    // A page is kept in reserve, for the cleaning of others.
    const isOverBound = this.bytes + wanted + pageBytes > this.maxBytes
    if (wanted > 0 && (isOverBound || (needsPage && this.#arena.isFull))) return -1
    if (needsChunk) this.#openChunk(chunk)
    return chunk
  }

  #openChunk(chunk: number): void {
    const words = new Int32Array(chunkEntries * this.#stride)
    this.words[chunk] = words
    this.floats[chunk] = new Float32Array(words.buffer)
    this.#freeHeads[chunk] = 0
    this.#used[chunk] = 0
    this.#live[chunk] = 0
    this.#chunkCount++
  }

  #releaseChunk(chunk: number): void {
    this.words[chunk] = noWords
    this.floats[chunk] = noFloats
    this.#freeHeads[chunk] = 0
    this.#used[chunk] = 0
    this.#chunkCount--
    for (const follower of this.#followers) follower.releaseChunk(chunk)
  }

  #takeIndex(chunk: number): number {
    this.#live[chunk]!++
    const head = this.#freeHeads[chunk]!
    if (head === 0) return (chunk << chunkShift) + this.#used[chunk]!++
    this.#freeHeads[chunk] = this.words[chunk]![((head - 1) & chunkMask) * this.#stride]!
    return head - 1
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
    const words = this.words[index >>> chunkShift]!
    const at = (index & chunkMask) * this.#stride + refWord
    if (words[at]! >>> 0 !== ref) return
    words[at] = this.#arena.add(key, 0, key.length)
    this.#arena.free(ref)
  }
}
