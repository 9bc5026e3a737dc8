/**
 * Counts of one interval by dense index: accesses, writes and bytes, three words a key, in chunks so that nothing is
 * copied when keys come; and the list of the indices that were touched, so that reading an interval costs what
 * happened in it and not what is known.
 */
const chunkShift = 12
const chunkEntries = 1 << chunkShift
const chunkMask = chunkEntries - 1
const wordsPerKey = 3
const maxUint32 = 0xffff_ffff

/** One of the two buffers of a counter. */
export class IntervalCounts {
  readonly #counts: Uint32Array[] = []
  readonly #touched: Uint32Array[] = []
  #touchedCount = 0
  count = 0
  writes = 0
  bytes = 0

  /** Keys touched since the last `reset`. */
  get keyCount(): number {
    return this.#touchedCount
  }

  /** Counts one access of a key; gives its accesses so far. */
  add(index: number, isWrite: boolean, bytes: number): number {
    const chunk = this.#counts[index >>> chunkShift] ?? this.#open(index >>> chunkShift)
    const at = (index & chunkMask) * wordsPerKey
    const before = chunk[at]!
    if (before === 0) this.#touch(index)
    chunk[at] = before + 1
    this.count++
    if (isWrite) {
      chunk[at + 1]!++
      this.writes++
    }
    if (bytes > 0) {
      chunk[at + 2] = Math.min(maxUint32, chunk[at + 2]! + bytes)
      this.bytes += bytes
    }
    return before + 1
  }

  /** Accesses of a key since the last `reset`. */
  countOf(index: number): number {
    return this.#counts[index >>> chunkShift]?.[(index & chunkMask) * wordsPerKey] ?? 0
  }

  /** Hands over the touched keys from the `from`-th on, at most `max` of them, and clears them. */
  take(from: number, max: number, visit: (index: number, count: number, writes: number, bytes: number) => void): void {
    const end = Math.min(this.#touchedCount, from + max)
    for (let nth = from; nth < end; nth++) {
      const index = this.#touched[nth >>> chunkShift]![nth & chunkMask]!
      const chunk = this.#counts[index >>> chunkShift]!
      const at = (index & chunkMask) * wordsPerKey
      const count = chunk[at]!
      const writes = chunk[at + 1]!
      const bytes = chunk[at + 2]!
      chunk[at] = 0
      chunk[at + 1] = 0
      chunk[at + 2] = 0
      visit(index, count, writes, bytes)
    }
  }

  /** Forgets the touched keys, which must all have been taken, and the totals. */
  reset(): void {
    this.#touchedCount = 0
    this.count = 0
    this.writes = 0
    this.bytes = 0
  }

  #open(chunk: number): Uint32Array {
    return (this.#counts[chunk] = new Uint32Array(chunkEntries * wordsPerKey))
  }

  #touch(index: number): void {
    const nth = this.#touchedCount++
    const chunk = (this.#touched[nth >>> chunkShift] ??= new Uint32Array(chunkEntries))
    chunk[nth & chunkMask] = index
  }
}
