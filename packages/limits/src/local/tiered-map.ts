/**
 * A map whose entries are either over their limit or not, for tables that must drop something when they are full: those
 * that are not are dropped first, so that a flood of new keys cannot release a denied one.
 *
 * Two maps, each with a hand that goes round: finding the next entry costs the same however many there are.
 */
export class TieredMap<Value> {
  // Beside their hands, not in an object with them: `get` is the dearest part of a call in process.
  readonly #open = new Map<string, Value>()
  readonly #over = new Map<string, Value>()
  readonly #openHand = new Hand(this.#open)
  readonly #overHand = new Hand(this.#over)

  get size(): number {
    return this.#open.size + this.#over.size
  }

  get(key: string): Value | undefined {
    return this.#open.get(key) ?? this.#over.get(key)
  }

  /** Adds a key that is not in the map. */
  add(key: string, value: Value): void {
    this.#open.set(key, value)
  }

  delete(key: string): void {
    if (!this.#open.delete(key)) this.#over.delete(key)
  }

  /** Records whether a key is over its limit now. */
  mark(key: string, isOver: boolean): void {
    const [from, to] = isOver ? [this.#open, this.#over] : [this.#over, this.#open]
    const value = from.get(key)
    if (value === undefined) return
    from.delete(key)
    to.set(key, value)
  }

  /** The next of those to be dropped first. */
  nextToDrop(): [string, Value] | undefined {
    return this.#openHand.next() ?? this.#overHand.next()
  }

  /** The next of those over their limit. */
  nextOver(): [string, Value] | undefined {
    return this.#overHand.next()
  }
}

/** Goes round the entries of a map: a live iterator sees keys added behind it and skips deleted ones. */
class Hand<Value> {
  readonly #entries: Map<string, Value>
  #at: Iterator<[string, Value]>

  constructor(entries: Map<string, Value>) {
    this.#entries = entries
    this.#at = entries.entries()
  }

  /** The entry under the hand, wrapping around after the last; undefined if the map is empty. */
  next(): [string, Value] | undefined {
    let step = this.#at.next()
    if (step.done) {
      this.#at = this.#entries.entries()
      step = this.#at.next()
    }
    return step.done ? undefined : step.value
  }
}
