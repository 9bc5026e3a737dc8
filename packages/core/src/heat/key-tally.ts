import type { KeyBatch } from './key-batch.ts'

/**
 * Counts of one interval by key bytes, for whoever counts in the middle of other work and must not feel it: a proxy has
 * some 50 ns for each command that it forwards (`npm run -s bench -- proxy`, `counting-cost`).
 *
 * The price of a look-up there is waiting for memory: whatever the table has is out of the processor's cache when it is
 * looked at next. So accesses are counted many at a time (`KeyBatch`), each step in a loop of its own, and what a known
 * key touches is one entry of 16 bytes. The table is kept at most two fifths full: most keys stand at their place, and a
 * processor that guesses so guesses right.
 *
 *     word   0      1       2                   3
 *            hash   check   row + 1, 0 = free   count
 *
 * All else stands in *rows*, in the order in which keys came. A row is written when a key is first seen, next to the one
 * before it: its key goes into a log as an entry of a report, with room for the count behind it:
 *
 *     length (varint)   key   count · 2 (a varint of two bytes)
 *
 * **No key is compared.** Two hashes of the key (`KeyHasher`), 64 bits with a seed that nobody outside knows, stand for it: two keys
 * are taken for one with a probability of 2^-64 a pair, and then two heats are one. A comparison would cost a second wait
 * for memory at every access.
 *
 * **Rows outlive their interval.** Most keys of an interval come again in the next one; a key whose row is there costs
 * nothing but its entry. When an interval ends, counts go back to 0 and nothing else changes; the rows of cold keys, which
 * nearly all are, need only their counts filled in to be a piece of the report. Only when the table is too full, or nearly
 * all of its rows had no access for long, does it start anew, empty, with a size by how many keys there were.
 *
 * A key stands in one of 64 entries from its place on and takes the first free one. Nothing is ever taken out, so a
 * look-up ends at the first free entry. `add` gives 0 for a key that has no place: 64 others came before it, or there are
 * `maxRows` already. Such keys need another counter, and have no place for the rest of the interval either: a key is
 * never in both.
 */
export class KeyTally {
  #entries = new Int32Array(leastEntries * entryWords)
  #mask = leastEntries - 1
  #rows = 0
  #misses = 0
  /** Intervals in a row in which hardly any of the rows was counted. */
  #looseIntervals = 0
  /** Six words a row: its entry, where it ends in the log, its count, writes and bytes, and whether it is watched. */
  #details = new Int32Array(leastRows * rowWords)
  #log = new Uint8Array(leastRows * 20)
  /** False until a whole interval was visited key by key since the table started anew. */
  #isKnown = false
  /** What was counted of the key that `addAll` stopped at: 0 where it has no place. */
  sum = 0

  /**
   * Counts accesses of the key that stands in `bytes` from `start` to `end` and has these two hashes. Gives what was
   * counted of it in this interval, or 0 where it has no place.
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
    const entries = this.#entries
    let at = this.#seek(hash, check)
    if (at >= 0 && entries[at + 2] === 0) at = this.#addRow(bytes, start, end, hash, check, at)
    if (at < 0) {
      this.#misses++
      return 0
    }
    const sum = entries[at + 3]! + count
    entries[at + 3] = sum
    if (writes > 0 || byteCount > 0) this.#addDetail(entries[at + 2]! - 1, writes, byteCount)
    return sum
  }

  /**
   * Brings the entries of a batch into the processor's cache. Nothing else is done here, so that it waits for all of them
   * at once: with other work between them it would wait for each.
   */
  preload({ hashes, size }: KeyBatch): number {
    const entries = this.#entries
    const mask = this.#mask
    let touched = 0
    for (let nth = 0; nth < size; nth++) touched ^= entries[(hashes[nth]! & mask) * entryWords]!
    return touched
  }

  /**
   * Counts one access of each key of a batch from `from` on. Stops at a key that has no place or whose count has come to
   * `limit`, and gives its number (`sum` is its count); the batch's size where there is none.
   */
  addAll(batch: KeyBatch, from: number, limit: number): number {
    const { size, hashes, checks, written } = batch
    const entries = this.#entries
    for (let nth = from; nth < size; nth++) {
      const hash = hashes[nth]!
      const check = checks[nth]!
      let at = this.#seek(hash, check)
      if (at >= 0 && entries[at + 2] === 0) {
        at = this.#addRow(batch.bytesOf(nth), batch.starts[nth]!, batch.ends[nth]!, hash, check, at)
      }
      if (at < 0) {
        this.#misses++
        this.sum = 0
        return nth
      }
      const sum = entries[at + 3]! + 1
      entries[at + 3] = sum
      if (written[nth]! >= 0) this.#addDetail(entries[at + 2]! - 1, 1, written[nth]!)
      if (sum < limit) continue
      this.sum = sum
      return nth
    }
    return size
  }

  /**
   * Ends the interval: hands every key and its counts over, in the order in which the keys first came. Keys that were only
   * read, fewer than `below` times, go in pieces, many at a time, unless they are watched.
   */
  drain(visitor: TallyVisitor, below: number): void {
    this.#collect()
    const details = this.#details
    const log = this.#log
    const bound = this.#isKnown ? Math.min(below, maxPieceCount) : 0
    const end = this.#rows * rowWords
    let keys = 0
    let rowStart = 0
    let piece = 0
    let pieceKeys = 0
    let pieceCount = 0
    for (let detail = 0; detail < end; detail += rowWords) {
      const rowEnd = details[detail + 1]!
      const count = details[detail + 2]!
      if (count > 0 && count < bound && details[detail + 3] === 0 && details[detail + 5] === 0) {
        log[rowEnd - 2] = ((count << 1) & 0x7f) | 0x80
        log[rowEnd - 1] = count >> 6
        pieceKeys++
        pieceCount += count
      } else {
        if (pieceKeys > 0) visitor.onPiece(log, piece, rowStart, pieceKeys, pieceCount)
        keys += pieceKeys
        pieceKeys = 0
        pieceCount = 0
        piece = rowEnd
        if (count > 0) {
          keys++
          this.#visit(visitor, detail, rowStart, rowEnd)
        }
      }
      rowStart = rowEnd
    }
    if (pieceKeys > 0) visitor.onPiece(log, piece, rowStart, pieceKeys, pieceCount)
    this.#isKnown = true
    this.#fit(keys + pieceKeys)
  }

  #visit(visitor: TallyVisitor, detail: number, rowStart: number, rowEnd: number): void {
    const details = this.#details
    const keyEnd = rowEnd - countBytes
    const keyStart = rowStart + varintBytes(rowEnd - rowStart - countBytes)
    const hash = this.#entries[details[detail]!]!
    const [count, writes, byteCount] = [details[detail + 2]!, details[detail + 3]!, details[detail + 4]! >>> 0]
    details[detail + 3] = 0
    details[detail + 4] = 0
    const isWatched = visitor.onKey(this.#log, keyStart, keyEnd, hash, count, writes, byteCount)
    details[detail + 5] = isWatched ? 1 : 0
  }

  /** Takes the counts out of the entries into the rows: in a loop of its own, for the same reason as `preload`. */
  #collect(): void {
    const entries = this.#entries
    const details = this.#details
    const end = this.#rows * rowWords
    for (let detail = 0; detail < end; detail += rowWords) {
      const at = details[detail]! + 3
      details[detail + 2] = entries[at]!
      entries[at] = 0
    }
  }

  /** Where the entry of a key is in the table, or the free one that it would take; -1 where it has no place. */
  #seek(hash: number, check: number): number {
    const entries = this.#entries
    const mask = this.#mask
    let entry = hash & mask
    for (let nth = 0; nth < window; nth++, entry = (entry + 1) & mask) {
      const at = entry * entryWords
      if (entries[at + 2] === 0 || (entries[at] === hash && entries[at + 1] === check)) return at
    }
    return -1
  }

  /** Gives a key the free entry at `at` and a row; -1 where there is no room for more. */
  #addRow(bytes: Uint8Array, start: number, end: number, hash: number, check: number, at: number): number {
    const row = this.#rows
    const detail = row * rowWords
    const length = end - start
    let to = row === 0 ? 0 : this.#details[detail - rowWords + 1]!
    const needed = to + length + maxRowHead + countBytes
    if (row === maxRows || needed > maxLogBytes) return -1
    if (detail === this.#details.length) this.#details = larger(this.#details, new Int32Array(detail * 2))
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
    const entries = this.#entries
    entries[at] = hash
    entries[at + 1] = check
    entries[at + 2] = row + 1
    entries[at + 3] = 0
    const details = this.#details
    details[detail] = at
    details[detail + 1] = to + countBytes
    details[detail + 3] = 0
    details[detail + 4] = 0
    details[detail + 5] = 0
    this.#rows = row + 1
    return at
  }

  #addDetail(row: number, writes: number, byteCount: number): void {
    const details = this.#details
    const detail = row * rowWords
    details[detail + 3]! += writes
    details[detail + 4] = Math.min(maxUint32, (details[detail + 4]! >>> 0) + byteCount)
  }

  /** Starts anew where the table is too full or nearly empty, with a size for as many keys as the interval had. */
  #fit(keys: number): void {
    const entries = this.#mask + 1
    const isFull = this.#rows * 5 > entries * 2 || this.#misses > 0
    this.#looseIntervals = keys * 16 < this.#rows ? this.#looseIntervals + 1 : 0
    const isLoose = this.#looseIntervals >= manyIntervals && entries > leastEntries
    if (!isFull && !isLoose) return
    // What had no place is not in the rows: the table doubles once more where there was much of it.
    let wanted = entries
    if (this.#misses > 0) wanted = entries * (this.#misses > this.#rows ? 4 : 2)
    else if (keys * 3 > entries) wanted = entries * 2
    else if (keys * 12 < entries) wanted = entries / 2
    const size = Math.max(leastEntries, Math.min(mostEntries, wanted))
    this.#misses = 0
    this.#looseIntervals = 0
    this.#rows = 0
    this.#isKnown = false
    if (size === entries) this.#entries.fill(0)
    else this.#entries = new Int32Array(size * entryWords)
    this.#mask = size - 1
  }
}

/** Gets what was counted in an interval. */
export interface TallyVisitor {
  /** A key, its bytes from `start` to `end` until it returns, its hash and counts. Gives whether it is to be watched. */
  onKey(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    count: number,
    writes: number,
    byteCount: number,
  ): boolean
  /** Reads of some keys: entries of a report in `bytes` from `start` to `end` until it returns. */
  onPiece(bytes: Uint8Array, start: number, end: number, keys: number, count: number): void
}

const entryWords = 4
const rowWords = 6
const leastRows = 2048
const leastEntries = 8192
const mostEntries = 262_144
const maxRows = 65_535
const window = 64
/** A pause, or an interval that ended early, says nothing about the next one. */
const manyIntervals = 50
const maxUint32 = 0xffff_ffff
const maxLogBytes = 16 * 1024 * 1024
const maxRowHead = 4
const countBytes = 2
/** Twice a count below it fits two bytes of a varint. */
const maxPieceCount = 2 ** 13

/** The bytes of a varint that, with as many bytes as it says behind it, takes `total`. */
function varintBytes(total: number): number {
  let bytes = 1
  while (total - bytes >= 2 ** (7 * bytes)) bytes++
  return bytes
}

function larger<T extends Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from)
  return to
}
