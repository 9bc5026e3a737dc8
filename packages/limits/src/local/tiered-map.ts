/**
 * A map whose entries are either over their limit or not, for tables that must drop something when they are full: those
 * that are not are dropped first, so that a flood of new keys cannot release a denied one.
 *
 * Two maps, each with a hand that goes round: finding the next entry costs the same however many there are.
 */
export class TieredMap<Value> {
  readonly #open = new Ring<Value>()
  readonly #over = new Ring<Value>()

  get size(): number {
    return this.#open.entries.size + this.#over.entries.size
  }

  get(key: string): Value | undefined {
    return this.#open.entries.get(key) ?? this.#over.entries.get(key)
  }

  /** Adds a key that is not in the map. */
  add(key: string, value: Value): void {
    this.#open.entries.set(key, value)
  }

  delete(key: string): void {
    if (!this.#open.entries.delete(key)) this.#over.entries.delete(key)
  }

  /** Records whether a key is over its limit now. */
  mark(key: string, isOver: boolean): void {
    const [from, to] = isOver ? [this.#open, this.#over] : [this.#over, this.#open]
    const value = from.entries.get(key)
    if (value === undefined) return
    from.entries.delete(key)
    to.entries.set(key, value)
  }

  /** The next of those to be dropped first. */
  nextToDrop(): [string, Value] | undefined {
    return this.#open.next() ?? this.#over.next()
  }

  /** The next of those over their limit. */
  nextOver(): [string, Value] | undefined {
    return this.#over.next()
  }
}

class Ring<Value> {
  readonly entries = new Map<string, Value>()
  /** A live iterator sees keys added behind it and skips deleted ones. */
  #hand = this.entries.entries()

  /** The entry under the hand, wrapping around after the last; undefined if the map is empty. */
  next(): [string, Value] | undefined {
    let step = this.#hand.next()
    if (step.done) {
      this.#hand = this.entries.entries()
      step = this.#hand.next()
    }
    return step.done ? undefined : step.value
  }
}
