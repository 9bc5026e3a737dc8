import { KeyBatch } from './key-batch.ts'
import { bucketEntries, bucketsAt, maxCount, mostEntries, TallyKernel, windowBuckets } from './tally-kernel.ts'
import type { TallyVisitor } from './tally-visitor.ts'

/**
 * Counts per key bytes for one interval, for code that counts in the middle of other work and must barely notice it: a
 * proxy has some 50 ns for each command that it forwards (`npm run -s bench -- proxy`, `counting-cost`).
 *
 * The cost of a look-up there is waiting for memory: whatever the table holds is out of the processor's cache by the
 * next look-up. So accesses are counted many at a time (`KeyBatch`), each step in its own loop (`TallyKernel`), and a
 * known key touches only one bucket of eight entries, which is what comes from memory at once:
 *
 *     words 0–7    checks, the second hashes of eight keys
 *     words 8–15   of each 1, eleven bits of the first hash, twenty bits of the count; all of it 0 = free
 *
 * The checks of a bucket are all compared together, so no branch is mispredicted on a key's position in it, and the
 * table may be two thirds full, which leaves fewer buckets to wait for.
 *
 * Everything else is in *rows*, in the order of first access, each field in its own array. A row is written when a key
 * is first seen: its key goes into a log as an entry of a report, with room for the count after it:
 *
 *     length (varint)   key   count · 2 (a varint of two bytes)
 *
 * **No key is compared.** Two hashes of the key (`KeyHasher`) with a secret seed stand for it, 43 bits of them plus its
 * bucket: a new key is mistaken for an existing one with a probability of 2^-43 for each entry examined, hardly ever
 * more than eight, and then two keys share their heat. A comparison would cost a second wait for memory on every
 * access.
 *
 * **Rows outlive their interval.** Most keys of an interval come back in the next one; a key whose row exists costs
 * nothing but its entry. When an interval ends, counts return to 0 and nothing else changes; the rows of cold keys,
 * which is nearly all of them, only need their counts filled in to be a piece of the report. If there are many of them,
 * half are reported every other time: a report of ten thousand keys costs its sender as much as counting them. Only
 * when the table is too full, or when nearly all of its rows have been idle for long, does it start over, empty, at a
 * size based on the number of keys.
 *
 * A key is in one of the 32 buckets from its own onwards and takes the first free entry. Nothing is ever removed, so a
 * look-up ends at the first free entry. `add` returns 0 for a key that does not fit: 256 others came before it, or
 * there are `maxRows` already. Such keys need another counter and stay out for the rest of the interval: a key is never
 * in both.
 */
export class KeyTally {
  /** Accesses waiting to be counted together. */
  readonly batch: KeyBatch
  readonly #kernel = new TallyKernel()
  #buckets: Int32Array
  /** Number of buckets minus one. */
  #mask = leastEntries / bucketEntries - 1
  #rows = 0
  #misses = 0
  /** Consecutive intervals in which hardly any of the rows were counted. */
  #looseIntervals = 0
  /** By entry: its row. */
  #rowAt = new Uint16Array(leastEntries)
  /** By row: the position of its entry's word in the buckets. */
  #wordOf = new Int32Array(leastRows)
  /** By row: where it ends in the log. */
  #ends = new Int32Array(leastRows)
  /** By row: accesses of finished intervals that have not been reported yet. */
  #counts = new Int32Array(leastRows)
  /** By row: 0, or why it must not be part of a piece. */
  #marks = new Uint8Array(leastRows)
  /** Four words per row: its first hash, writes, the bytes written, and the count beyond `maxCount`. */
  #details = new Int32Array(leastRows * detailWords)
  #log = new Uint8Array(leastRows * 20)
  /** False until a whole interval has been visited key by key since the table started over. */
  #isKnown = false
  #heldCount = 0
  /** Which half of the cold keys is reported next, when there are many. */
  #isSecondHalf = false
  /** The count of the key that `addAll` stopped at: 0 if it does not fit. */
  sum = 0

  /** Throws if there is no WebAssembly (`TallyKernel`). `seed` is for the keys' hashes. */
  constructor(seed: number) {
    this.batch = new KeyBatch(this.#kernel, seed)
    this.#buckets = this.#emptyBuckets(leastEntries)
  }

  /**
   * Counts accesses of the key in `bytes` from `start` to `end`, which has these two hashes. Returns its count in this
   * interval, or 0 if it does not fit.
   */
  add(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    check: number,
    count: number,
    writes: number,
    byteCount: number,
  ): number {
    const entry = this.#placeFor(bytes, start, end, hash, check)
    if (entry < 0) return 0
    if (writes > 0 || byteCount > 0) this.#addWrites(entry, writes, byteCount)
    return this.#addTo(entry, count)
  }

  /** Hashes the keys of the settled batch and brings their buckets into the processor's cache. */
  prepare(): void {
    this.batch.hash()
    this.#kernel.loops.preload(this.batch.size, this.#mask)
  }

  /**
   * Counts one access of each key in the prepared batch, from `from` on. Stops at a key that does not fit or whose
   * count has reached `limit`, and returns its number (`sum` is its count); returns the batch's size if it did not
   * stop.
   */
  addAll(from: number, limit: number): number {
    const { batch } = this
    const { size, hashes, checks, written } = batch
    const { loops } = this.#kernel
    const simple = Math.max(0, Math.min(limit, maxCount) - 1)
    for (let nth = from; ; nth++) {
      nth = loops.addReads(nth, size, simple, this.#mask)
      if (nth === size) return size
      const isWrite = written[nth]! >= 0
      const [writes, byteCount] = isWrite ? [1, written[nth]!] : [0, 0]
      const [start, end] = [batch.startOf(nth), batch.endOf(nth)]
      this.sum = this.add(batch.bytes, start, end, hashes[nth]!, checks[nth]!, 1, writes, byteCount)
      if (this.sum === 0 || this.sum >= limit) return nth
    }
  }

  /**
   * Ends the interval: passes on keys and their counts in the order of first access. Keys that were only read, fewer
   * than `below` times, go in pieces of many keys, unless they are watched. If there are many of those, half of them go
   * now, with their counts since they last went, and the others when the next interval ends.
   */
  drain(visitor: TallyVisitor, below: number): void {
    const keys = this.#collect()
    const size = this.#fittingSize(keys)
    const bound = this.#isKnown ? Math.min(below, maxPieceCount) : 0
    const rows = this.#rows
    const half = rows >> 1
    this.#heldCount = 0
    if (rows <= manyRows || size > 0) this.#handOver(visitor, 0, rows, bound)
    else if (this.#isSecondHalf) {
      this.#hold(visitor, 0, half, bound)
      this.#handOver(visitor, half, rows, bound)
    } else {
      this.#handOver(visitor, 0, half, bound)
      this.#hold(visitor, half, rows, bound)
    }
    this.#isSecondHalf = !this.#isSecondHalf
    this.#isKnown = true
    if (size > 0) this.#startAnew(size)
  }

  /** Accesses of keys held back until the next interval ends. */
  get heldCount(): number {
    return this.#heldCount
  }

  /** Passes on the rows from `from` to `to`. */
  #handOver(visitor: TallyVisitor, from: number, to: number, bound: number): void {
    const [counts, ends, marks, log] = [this.#counts, this.#ends, this.#marks, this.#log]
    let rowStart = this.#startOf(from)
    let piece = rowStart
    let pieceKeys = 0
    let pieceCount = 0
    for (let row = from; row < to; row++) {
      const rowEnd = ends[row]!
      const count = counts[row]!
      if (count > 0 && count < bound && marks[row] === 0) {
        log[rowEnd - 2] = ((count << 1) & 0x7f) | 0x80
        log[rowEnd - 1] = count >> 6
        counts[row] = 0
        pieceKeys++
        pieceCount += count
      } else {
        if (pieceKeys > 0) visitor.onPiece(log, piece, rowStart, pieceKeys, pieceCount)
        pieceKeys = 0
        pieceCount = 0
        piece = rowEnd
        if (count > 0) this.#visit(visitor, row)
      }
      rowStart = rowEnd
    }
    if (pieceKeys > 0) visitor.onPiece(log, piece, rowStart, pieceKeys, pieceCount)
  }

  /** Passes on those rows from `from` to `to` that cannot wait. */
  #hold(visitor: TallyVisitor, from: number, to: number, bound: number): void {
    const [counts, marks] = [this.#counts, this.#marks]
    for (let row = from; row < to; row++) {
      const count = counts[row]!
      if (count < bound && marks[row] === 0) this.#heldCount += count
      else if (count > 0) this.#visit(visitor, row)
    }
  }

  #visit(visitor: TallyVisitor, row: number): void {
    const details = this.#details
    const detail = row * detailWords
    const [rowStart, rowEnd] = [this.#startOf(row), this.#ends[row]!]
    const keyEnd = rowEnd - countBytes
    const keyStart = rowStart + varintBytes(rowEnd - rowStart - countBytes)
    const hash = details[detail]!
    const count = this.#counts[row]! + details[detail + 3]!
    const [writes, byteCount] = [details[detail + 1]!, details[detail + 2]! >>> 0]
    this.#counts[row] = 0
    details.fill(0, detail + 1, detail + detailWords)
    const isWatched = visitor.onKey(this.#log, keyStart, keyEnd, hash, count, writes, byteCount)
    this.#marks[row] = isWatched ? watchedMark : 0
  }

  /**
   * Moves the counts from the buckets to the rows, in a separate loop so that memory accesses overlap. Returns the
   * number of keys counted.
   */
  #collect(): number {
    const [buckets, wordOf, counts, rows] = [this.#buckets, this.#wordOf, this.#counts, this.#rows]
    let keys = 0
    for (let row = 0; row < rows; row++) {
      const at = wordOf[row]!
      const word = buckets[at]!
      const count = word & maxCount
      buckets[at] = word - count
      counts[row]! += count
      if (count > 0) keys++
    }
    return keys
  }

  /** Where a row begins in the log. */
  #startOf(row: number): number {
    return row === 0 ? 0 : this.#ends[row - 1]!
  }

  /** The entry of a key, or the free one that it would take; -1 if it does not fit. */
  #seek(hash: number, check: number): number {
    const buckets = this.#buckets
    const tag = tagOf(hash)
    for (let nth = 0; nth < windowBuckets; nth++) {
      const first = ((hash + nth) & this.#mask) * bucketEntries
      for (let entry = first; entry < first + bucketEntries; entry++) {
        const word = buckets[wordAt(entry)]!
        if (word === 0 || (buckets[checkAt(entry)] === check && (word & ~maxCount) === tag)) return entry
      }
    }
    return -1
  }

  /** The entry of a key, assigned if it has none; -1 if it does not fit. */
  #placeFor(bytes: Uint8Array, start: number, end: number, hash: number, check: number): number {
    const found = this.#seek(hash, check)
    const isKnown = found >= 0 && this.#buckets[wordAt(found)] !== 0
    if (isKnown || (found >= 0 && this.#addRow(bytes, start, end, hash, check, found))) return found
    this.#misses++
    return -1
  }

  /** Adds accesses to an entry, and any overflow to its row; returns the sum. */
  #addTo(entry: number, count: number): number {
    const at = wordAt(entry)
    const word = this.#buckets[at]!
    const sum = (word & maxCount) + count
    this.#buckets[at] = (word & ~maxCount) | Math.min(sum, maxCount)
    if (sum < maxCount) return sum
    const beyond = this.#rowAt[entry]! * detailWords + 3
    this.#details[beyond]! += sum - maxCount
    return maxCount + this.#details[beyond]!
  }

  /** Gives a key a free entry and a row; false if there is no room. */
  #addRow(bytes: Uint8Array, start: number, end: number, hash: number, check: number, entry: number): boolean {
    const row = this.#rows
    const length = end - start
    let to = this.#startOf(row)
    const needed = to + length + maxRowHead + countBytes
    if (row === maxRows || needed > maxLogBytes) return false
    if (row === this.#ends.length) this.#growRows()
    if (needed > this.#log.length) this.#log = larger(this.#log, new Uint8Array(Math.max(this.#log.length * 2, needed)))
    const log = this.#log
    let rest = length
    for (; rest >= 0x80; rest >>>= 7) log[to++] = (rest & 0x7f) | 0x80
    log[to++] = rest
    if (length < 64) for (let index = start; index < end; index++) log[to++] = bytes[index]!
    else {
      log.set(bytes.subarray(start, end), to)
      to += length
    }
    this.#buckets[checkAt(entry)] = check
    this.#buckets[wordAt(entry)] = tagOf(hash)
    this.#rowAt[entry] = row
    this.#wordOf[row] = wordAt(entry)
    this.#ends[row] = to + countBytes
    this.#counts[row] = 0
    this.#marks[row] = 0
    this.#details.fill(0, row * detailWords, (row + 1) * detailWords)
    this.#details[row * detailWords] = hash
    this.#rows = row + 1
    return true
  }

  #growRows(): void {
    const rows = this.#ends.length * 2
    this.#wordOf = larger(this.#wordOf, new Int32Array(rows))
    this.#ends = larger(this.#ends, new Int32Array(rows))
    this.#counts = larger(this.#counts, new Int32Array(rows))
    this.#marks = larger(this.#marks, new Uint8Array(rows))
    this.#details = larger(this.#details, new Int32Array(rows * detailWords))
  }

  #addWrites(entry: number, writes: number, byteCount: number): void {
    const row = this.#rowAt[entry]!
    const details = this.#details
    const detail = row * detailWords
    details[detail + 1]! += writes
    details[detail + 2] = Math.min(maxUint32, (details[detail + 2]! >>> 0) + byteCount)
    this.#marks[row] = this.#marks[row]! | writtenMark
  }

  /** The size that the table should have for the interval's number of keys; 0 to keep its size. */
  #fittingSize(keys: number): number {
    const entries = this.#rowAt.length
    const isFull = this.#rows * 3 > entries * 2 || this.#misses > 0
    this.#looseIntervals = keys * 16 < this.#rows ? this.#looseIntervals + 1 : 0
    const isLoose = this.#looseIntervals >= manyIntervals && entries > leastEntries
    if (!isFull && !isLoose) return 0
    // Keys that did not fit are not in the rows: double the table once more if there were many.
    let wanted = entries
    if (this.#misses > 0) wanted = entries * (this.#misses > this.#rows ? 4 : 2)
    else if (keys * 8 > entries * 5) wanted = entries * 2
    else if (keys * 6 < entries) wanted = entries / 2
    return Math.max(leastEntries, Math.min(mostEntries, wanted))
  }

  #startAnew(size: number): void {
    this.#misses = 0
    this.#looseIntervals = 0
    this.#rows = 0
    this.#isKnown = false
    if (size !== this.#rowAt.length) this.#rowAt = new Uint16Array(size)
    this.#mask = size / bucketEntries - 1
    this.#buckets = this.#emptyBuckets(size)
  }

  #emptyBuckets(entries: number): Int32Array {
    return new Int32Array(this.#kernel.buffer, bucketsAt, entries * 2).fill(0)
  }
}

const detailWords = 4
const watchedMark = 1
const writtenMark = 2
const leastRows = 2048
const leastEntries = 8192
const maxRows = 65_535
/** Above this many rows, cold keys are reported in halves. */
const manyRows = 4096
/** A pause, or an interval that ended early, says nothing about the next one. */
const manyIntervals = 50
const maxUint32 = 0xffff_ffff
const maxLogBytes = 16 * 1024 * 1024
const maxRowHead = 4
const countBytes = 2
/** Twice a count below it fits two bytes of a varint. */
const maxPieceCount = 2 ** 13

/** Where an entry has its check. */
function checkAt(entry: number): number {
  return entry + (entry & ~(bucketEntries - 1))
}

/** Where an entry has its word. */
function wordAt(entry: number): number {
  return checkAt(entry) + bucketEntries
}

/** An entry's bits of a key's first hash; never 0. */
function tagOf(hash: number): number {
  return (hash | 0x8000_0000) & ~maxCount
}

/** The number of varint bytes such that the varint plus as many bytes as it states come to `total`. */
function varintBytes(total: number): number {
  let bytes = 1
  while (total - bytes >= 2 ** (7 * bytes)) bytes++
  return bytes
}

function larger<T extends Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from)
  return to
}
