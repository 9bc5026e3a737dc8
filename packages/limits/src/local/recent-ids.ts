/** Request ids seen within the last `forMs`, at most `max` of them: the oldest is forgotten first. */
export class RecentIds {
  readonly #seenAt = new Map<string, number>()
  readonly #forMs: number
  readonly #max: number

  constructor(forMs: number, max = 100_000) {
    this.#forMs = forMs
    this.#max = max
  }

  /** Whether an id has been seen. */
  has(id: string, nowMs: number): boolean {
    const seenAt = this.#seenAt.get(id)
    return seenAt !== undefined && nowMs - seenAt < this.#forMs
  }

  /** True the first time an id is seen. */
  isFirst(id: string, nowMs: number): boolean {
    if (this.has(id, nowMs)) return false
    this.#seenAt.delete(id)
    for (const [other, at] of this.#seenAt) {
      if (this.#seenAt.size < this.#max && nowMs - at < this.#forMs) break
      this.#seenAt.delete(other)
    }
    this.#seenAt.set(id, nowMs)
    return true
  }
}
