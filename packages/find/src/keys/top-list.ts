/**
 * Finds the `size` largest items in one pass: a min-heap on parallel arrays, whose root is the smallest item kept. Most
 * candidates of a long scan are smaller than the root and cost one comparison (`admits`), so a caller builds the entry,
 * and copies its key, only for the few that stay. Among equal weights the first one stays: otherwise a million keys of
 * one size would be a million changes. The result is sorted by weight, then by name.
 */
export class TopList<Entry> {
  readonly size: number
  readonly #nameOf: (entry: Entry) => string
  readonly #weights: number[] = []
  readonly #entries: Entry[] = []

  constructor(size: number, nameOf: (entry: Entry) => string) {
    this.size = size
    this.#nameOf = nameOf
  }

  /** Whether an entry of this weight would be kept. */
  admits(weight: number): boolean {
    return this.#weights.length < this.size || (this.size > 0 && weight > this.#weights[0]!)
  }

  add(weight: number, entry: Entry): void {
    if (!this.admits(weight)) return
    if (this.#weights.length < this.size) {
      this.#weights.push(weight)
      this.#entries.push(entry)
      this.#up(this.#weights.length - 1)
      return
    }
    this.#weights[0] = weight
    this.#entries[0] = entry
    this.#down(0)
  }

  /** The kept entries, heaviest first. */
  sorted(): Entry[] {
    return this.#entries
      .map((entry, index) => ({ entry, weight: this.#weights[index]! }))
      .sort((a, b) => b.weight - a.weight || (this.#nameOf(a.entry) < this.#nameOf(b.entry) ? -1 : 1))
      .map(({ entry }) => entry)
  }

  #up(start: number): void {
    let index = start
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!this.#less(index, parent)) return
      this.#swap(index, parent)
      index = parent
    }
  }

  #down(start: number): void {
    let index = start
    for (;;) {
      const left = 2 * index + 1
      let smallest = index
      if (left < this.#weights.length && this.#less(left, smallest)) smallest = left
      if (left + 1 < this.#weights.length && this.#less(left + 1, smallest)) smallest = left + 1
      if (smallest === index) return
      this.#swap(index, smallest)
      index = smallest
    }
  }

  #less(a: number, b: number): boolean {
    return this.#weights[a]! < this.#weights[b]!
  }

  #swap(a: number, b: number): void {
    const weight = this.#weights[a]!
    const entry = this.#entries[a]!
    this.#weights[a] = this.#weights[b]!
    this.#entries[a] = this.#entries[b]!
    this.#weights[b] = weight
    this.#entries[b] = entry
  }
}
