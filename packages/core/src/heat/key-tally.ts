import type { KeyBatch } from './key-batch.ts'

/**
 * Counts of one interval by key bytes, for whoever counts in the middle of other work and must not feel it: a proxy has
 * some 50 ns for each command that it forwards (`npm run -s bench -- proxy`, `counting-cost`).
 *
 * The price of a look-up there is waiting for memory: whatever the table has is out of the processor's cache when it is
 * looked at next. So accesses are counted many at a time (`KeyBatch`), each step in a loop of its own, and what a known
 * key touches is one entry of 8 bytes. The table is kept at most two fifths full: most keys stand at their place, and a
 * processor that guesses so guesses right.
 *
 *     word 0   check, the second hash
 *     word 1   1, eleven bits of the first hash, twenty bits of the count; all of it 0 = free
 *
 * All else stands in *rows*, in the order in which keys came, each thing in an array of its own. A row is written when a
 * key is first seen: its key goes into a log as an entry of a report, with room for the count behind it:
 *
 *     length (varint)   key   count · 2 (a varint of two bytes)
 *
 * **No key is compared.** Two hashes of the key (`KeyHasher`) with a seed that nobody outside knows stand for it, 43 bits
 * of them and its place: a new key is taken for one that is there with a probability of 2^-43 for each entry that is
 * looked at, hardly ever more than two, and then two heats are one. A comparison would cost a second wait for memory at
 * every access.
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
  /** By entry: its row. */
  #rowAt = new Uint16Array(leastEntries)
  /** By row: its entry. */
  #entryOf = new Int32Array(leastRows)
  /** By row: where it ends in the log. */
  #ends = new Int32Array(leastRows)
  /** By row: accesses of the interval that is handed over. */
  #counts = new Int32Array(leastRows)
  /** By row: 0, or why it must not be part of a piece. */
  #marks = new Uint8Array(leastRows)
  /** Four words a row: its first hash, writes, the bytes that they wrote, and what is counted beyond `maxCount`. */
  #details = new Int32Array(leastRows * detailWords)
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
    const entry = this.#placeFor(bytes, start, end, hash, check)
    if (entry < 0) return 0
    if (writes > 0 || byteCount > 0) this.#addWrites(entry, writes, byteCount)
    return this.#addTo(entry, count)
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
   * Counts one access of each key of a settled batch from `from` on. Stops at a key that has no place or whose count has come to
   * `limit`, and gives its number (`sum` is its count); the batch's size where there is none.
   */
  addAll(batch: KeyBatch, from: number, limit: number): number {
    const { size, hashes, checks, written } = batch
    const isOfReads = !batch.hasWrites
    const entries = this.#entries
    const mask = this.#mask
    const simple = Math.min(limit, maxCount) - 1
    for (let nth = from; nth < size; nth++) {
      const hash = hashes[nth]!
      const check = checks[nth]!
      const tag = tagOf(hash)
      let at = (hash & mask) * entryWords
      // Where the tag is another, a high bit is left.
      let count = (entries[at + 1]! ^ tag) >>> 0
      if (entries[at] !== check || count > maxCount) {
        at = this.#seek(hash, check) * entryWords
        count = at < 0 ? maxCount : (entries[at + 1]! ^ tag) >>> 0
      }
      if (count < simple && (isOfReads || written[nth]! < 0)) {
        entries[at + 1]!++
        continue
      }
      const [start, end] = [batch.startOf(nth), batch.endOf(nth)]
      const isWrite = written[nth]! >= 0
      this.sum = this.add(batch.bytes, start, end, hash, check, 1, isWrite ? 1 : 0, isWrite ? written[nth]! : 0)
      if (this.sum === 0 || this.sum >= limit) return nth
    }
    return size
  }

  /**
   * Ends the interval: hands every key and its counts over, in the order in which the keys first came. Keys that were only
   * read, fewer than `below` times, go in pieces, many at a time, unless they are watched.
   */
  drain(visitor: TallyVisitor, below: number): void {
    this.#collect()
    const [counts, ends, marks, log] = [this.#counts, this.#ends, this.#marks, this.#log]
    const bound = this.#isKnown ? Math.min(below, maxPieceCount) : 0
    const rows = this.#rows
    let keys = 0
    let rowStart = 0
    let piece = 0
    let pieceKeys = 0
    let pieceCount = 0
    for (let row = 0; row < rows; row++) {
      const rowEnd = ends[row]!
      const count = counts[row]!
      if (count > 0 && count < bound && marks[row] === 0) {
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
          this.#visit(visitor, row, rowStart, rowEnd)
        }
      }
      rowStart = rowEnd
    }
    if (pieceKeys > 0) visitor.onPiece(log, piece, rowStart, pieceKeys, pieceCount)
    this.#isKnown = true
    this.#fit(keys + pieceKeys)
  }

  #visit(visitor: TallyVisitor, row: number, rowStart: number, rowEnd: number): void {
    const details = this.#details
    const detail = row * detailWords
    const keyEnd = rowEnd - countBytes
    const keyStart = rowStart + varintBytes(rowEnd - rowStart - countBytes)
    const hash = details[detail]!
    const count = this.#counts[row]! + details[detail + 3]!
    const [writes, byteCount] = [details[detail + 1]!, details[detail + 2]! >>> 0]
    details.fill(0, detail + 1, detail + detailWords)
    const isWatched = visitor.onKey(this.#log, keyStart, keyEnd, hash, count, writes, byteCount)
    this.#marks[row] = isWatched ? watchedMark : 0
  }

  /** Takes the counts out of the entries into the rows: in a loop of its own, for the same reason as `preload`. */
  #collect(): void {
    const [entries, entryOf, counts, rows] = [this.#entries, this.#entryOf, this.#counts, this.#rows]
    for (let row = 0; row < rows; row++) {
      const at = entryOf[row]! * entryWords + 1
      const word = entries[at]!
      counts[row] = word & maxCount
      entries[at] = word & ~maxCount
    }
  }

  /** The entry of a key, or the free one that it would take; -1 where it has no place. */
  #seek(hash: number, check: number): number {
    const entries = this.#entries
    const mask = this.#mask
    const tag = tagOf(hash)
    let entry = hash & mask
    for (let nth = 0; nth < window; nth++, entry = (entry + 1) & mask) {
      const at = entry * entryWords
      const word = entries[at + 1]!
      if (word === 0 || (entries[at] === check && (word & ~maxCount) === tag)) return entry
    }
    return -1
  }

  /** The entry of a key, which gets one where it has none; -1 where it has no place. */
  #placeFor(bytes: Uint8Array, start: number, end: number, hash: number, check: number): number {
    const found = this.#seek(hash, check)
    const isKnown = found >= 0 && this.#entries[found * entryWords + 1] !== 0
    if (isKnown || (found >= 0 && this.#addRow(bytes, start, end, hash, check, found))) return found
    this.#misses++
    return -1
  }

  /** Counts accesses in an entry, and what does not fit there in its row; gives the sum. */
  #addTo(entry: number, count: number): number {
    const at = entry * entryWords + 1
    const word = this.#entries[at]!
    const sum = (word & maxCount) + count
    this.#entries[at] = (word & ~maxCount) | Math.min(sum, maxCount)
    if (sum < maxCount) return sum
    const beyond = this.#rowAt[entry]! * detailWords + 3
    this.#details[beyond]! += sum - maxCount
    return maxCount + this.#details[beyond]!
  }

  /** Gives a key a free entry and a row; false where there is no room for more. */
  #addRow(bytes: Uint8Array, start: number, end: number, hash: number, check: number, entry: number): boolean {
    const row = this.#rows
    const length = end - start
    let to = row === 0 ? 0 : this.#ends[row - 1]!
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
    this.#entries[entry * entryWords] = check
    this.#entries[entry * entryWords + 1] = tagOf(hash)
    this.#rowAt[entry] = row
    this.#entryOf[row] = entry
    this.#ends[row] = to + countBytes
    this.#marks[row] = 0
    this.#details.fill(0, row * detailWords, (row + 1) * detailWords)
    this.#details[row * detailWords] = hash
    this.#rows = row + 1
    return true
  }

  #growRows(): void {
    const rows = this.#ends.length * 2
    this.#entryOf = larger(this.#entryOf, new Int32Array(rows))
    this.#ends = larger(this.#ends, new Int32Array(rows))
    this.#counts = new Int32Array(rows)
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
    this.#mask = size - 1
    if (size === entries) {
      this.#entries.fill(0)
      return
    }
    this.#entries = new Int32Array(size * entryWords)
    this.#rowAt = new Uint16Array(size)
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

const entryWords = 2
const detailWords = 4
/** The count of an entry never grows beyond it: the rest is in its row. */
const maxCount = 2 ** 20 - 1
const watchedMark = 1
const writtenMark = 2
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

/** What an entry has of a key's first hash: never 0. */
function tagOf(hash: number): number {
  return (hash | 0x8000_0000) & ~maxCount
}

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
