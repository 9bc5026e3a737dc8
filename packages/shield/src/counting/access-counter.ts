/** Counts the accesses of one interval by key. */
export class AccessCounter {
  readonly #maxKeys: number
  #counts = new Map<string, { count: number; writes: number; bytes: number }>()
  #total = 0

  constructor(maxKeys = 65_536) {
    this.#maxKeys = maxKeys
  }

  get totalCount(): number {
    return this.#total
  }

  /** Counts one access; gives what was counted of the key in this interval. */
  add(key: string, isWrite = false, bytes = 0): number {
    this.#total++
    let entry = this.#counts.get(key)
    if (entry === undefined) {
      if (this.#counts.size >= this.#maxKeys) return 0
      entry = { count: 0, writes: 0, bytes: 0 }
      this.#counts.set(key, entry)
    }
    entry.count++
    if (isWrite) entry.writes++
    entry.bytes += bytes
    return entry.count
  }

  swap() {
    const counts = this.#counts
    const totalCount = this.#total
    this.#counts = new Map()
    this.#total = 0
    return {
      totalCount,
      take(_max: number, visit: (key: string, count: number, writes: number, bytes: number) => void): boolean {
        for (const [key, { count, writes, bytes }] of counts) visit(key, count, writes, bytes)
        return false
      },
    }
  }
}
