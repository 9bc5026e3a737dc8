/**
 * Counts of one interval by key bytes, for whoever counts in the middle of other work and must not feel it: a proxy has
 * some 50 ns for each command that it forwards (`npm run -s bench -- proxy`, `counting-cost`).
 *
 * The price of a look-up there is waiting for memory: whatever the table has is out of the processor's cache when the
 * next batch of commands comes. So what a known key touches is one entry of 16 bytes in a table that is kept dense:
 *
 *     word   0      1       2                       3
 *            hash   check   interval << 16 | row    count
 *
 * All else stands in *rows*, in the order in which keys came: the key's bytes in a log that is only appended to, its
 * writes and bytes. A row is written when a key is first seen in an interval, next to the one before it, and read when
 * the interval ends, so it costs next to nothing.
 *
 * **No key is compared.** Two hashes of the key, 64 bits with a seed that nobody outside knows, stand for it: two keys
 * are taken for one with a probability of 2^-64 a pair, and then two heats are one. A comparison would cost a second wait
 * for memory at every access.
 *
 * Nothing is cleared. An entry of an older interval is free, and a key that comes again mostly finds its own there. A
 * key stands in one of 64 entries from its place on and takes the first free one. Entries become free all at
 * once, when an interval ends, so those before a key's entry stay taken as long as it does: a look-up ends at the first
 * free entry. `add` gives 0 for a key that has no place: 64 others came before it, or there are `maxRows` already.
 * Such keys need another counter, and have no place for the rest of the interval either: a key is never in both. The
 * table has a size for the interval to come by how full it was in the one that ends.
 */
export class KeyTally {
  readonly #seed: number
  #entries = new Int32Array(leastEntries * entryWords)
  #mask = leastEntries - 1
  #interval = 1
  #rows = 0
  #misses = 0
  /** Four words a row: its entry, where its key ends in the log, its writes and bytes. */
  #details = new Int32Array(leastEntries * rowWords)
  #log = new Uint8Array(leastEntries * 16)
  /** The second hash of the key at hand. */
  check = 0

  /** `hashSeed` is what `hashBytes` has to be given for the same hash. */
  constructor(hashSeed = 0) {
    this.#seed = hashSeed
  }

  /** Keys of this interval. */
  get size(): number {
    return this.#rows
  }

  /** Makes a key the one at hand; gives its hash, the same as `hashBytes` gives. */
  take(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    let hash = this.#seed ^ Math.imul(length, 0x9e3779b1)
    let check = hash ^ 0x2545f491
    let at = start
    for (; at + 4 <= end; at += 4) {
      const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      hash = Math.imul(hash ^ word, 0x5bd1e995)
      hash ^= hash >>> 15
      check = Math.imul(check + word, 0x2c1b3c6d)
      check ^= check >>> 12
    }
    for (; at < end; at++) {
      hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
      check = Math.imul(check + bytes[at]!, 0x297a2d39)
      check ^= check >>> 15
    }
    hash ^= hash >>> 16
    hash = Math.imul(hash, 0x85ebca6b)
    hash ^= hash >>> 13
    hash = Math.imul(hash, 0xc2b2ae35)
    this.check = check
    return hash ^ (hash >>> 16)
  }

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
    const mask = this.#mask
    const interval = this.#interval
    let entry = hash & mask
    for (let nth = 0; nth < window; nth++, entry = (entry + 1) & mask) {
      const at = entry * entryWords
      const mark = entries[at + 2]!
      if (mark >> 16 !== interval) return this.#addRow(bytes, start, end, hash, check, entry, count, writes, byteCount)
      if (entries[at] !== hash || entries[at + 1] !== check) continue
      const sum = entries[at + 3]! + count
      entries[at + 3] = sum
      if (writes > 0 || byteCount > 0) this.#addDetail(mark & 0xffff, writes, byteCount)
      return sum
    }
    this.#misses++
    return 0
  }

  /** Brings the entries of these hashes into the processor's cache, all at once instead of one after the other. */
  preload(hashes: Int32Array, count: number): number {
    const entries = this.#entries
    const mask = this.#mask
    let sum = 0
    for (let nth = 0; nth < count; nth++) sum ^= entries[(hashes[nth]! & mask) * entryWords]!
    return sum
  }

  /** Ends the interval: hands every key and its counts over, in the order in which the keys came. */
  drain(visit: TallyVisitor): void {
    const rows = this.#rows
    const log = this.#log
    const entries = this.#entries
    const details = this.#details
    let start = 0
    for (let row = 0; row < rows; row++) {
      const detail = row * rowWords
      const end = details[detail + 1]!
      const at = details[detail]! * entryWords
      visit(log, start, end, entries[at]!, entries[at + 3]!, details[detail + 2]!, details[detail + 3]! >>> 0)
      start = end
    }
    this.#rows = 0
    this.#fit(rows)
  }

  #addRow(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    check: number,
    entry: number,
    count: number,
    writes: number,
    byteCount: number,
  ): number {
    const row = this.#rows
    if (row === maxRows) return 0
    const detail = row * rowWords
    if (detail === this.#details.length) this.#details = larger(this.#details, new Int32Array(detail * 2))
    const details = this.#details
    const from = row === 0 ? 0 : details[detail - rowWords + 1]!
    const length = end - start
    if (from + length > this.#log.length) {
      if (from + length > maxLogBytes) return 0
      this.#log = larger(this.#log, new Uint8Array(Math.max(this.#log.length * 2, from + length)))
    }
    const log = this.#log
    if (length < 64) for (let index = 0; index < length; index++) log[from + index] = bytes[start + index]!
    else log.set(bytes.subarray(start, end), from)
    const entries = this.#entries
    const at = entry * entryWords
    entries[at] = hash
    entries[at + 1] = check
    entries[at + 2] = (this.#interval << 16) | row
    entries[at + 3] = count
    details[detail] = entry
    details[detail + 1] = from + length
    details[detail + 2] = writes
    details[detail + 3] = Math.min(maxUint32, byteCount)
    this.#rows = row + 1
    return count
  }

  #addDetail(row: number, writes: number, byteCount: number): void {
    const details = this.#details
    const detail = row * rowWords
    details[detail + 2]! += writes
    details[detail + 3] = Math.min(maxUint32, (details[detail + 3]! >>> 0) + byteCount)
  }

  /** Begins the next interval, in a table that `rows` keys leave a third to two thirds full. */
  #fit(rows: number): void {
    const entries = this.#mask + 1
    const isFull = rows * 3 > entries * 2 || this.#misses > 0
    // What had no place is not in the rows: the table doubles once more where there was much of it.
    const wanted = isFull ? entries * (this.#misses > rows ? 4 : 2) : rows * 16 < entries ? entries / 2 : entries
    const size = Math.max(leastEntries, Math.min(mostEntries, wanted))
    this.#misses = 0
    if (size !== entries) this.#resize(size)
    else if (++this.#interval === maxInterval) {
      this.#interval = 1
      this.#entries.fill(0)
    }
  }

  #resize(entries: number): void {
    this.#entries = new Int32Array(entries * entryWords)
    this.#mask = entries - 1
    this.#interval = 1
  }
}

/** Gets a key, its bytes from `start` to `end` until it returns, its hash and what was counted of it. */
export type TallyVisitor = (
  bytes: Uint8Array,
  start: number,
  end: number,
  hash: number,
  count: number,
  writes: number,
  byteCount: number,
) => void

const entryWords = 4
const rowWords = 4
const leastEntries = 4096
const mostEntries = 131_072
const maxRows = 65_535
const window = 64
const maxInterval = 2 ** 15
const maxUint32 = 0xffff_ffff
const maxLogBytes = 16 * 1024 * 1024

function larger<T extends Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from)
  return to
}
