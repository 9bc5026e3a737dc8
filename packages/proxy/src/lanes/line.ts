/** A queue: first in, first out, and neither end moves the other items. */
export class Line<Item> {
  readonly #items: Item[] = []
  #first = 0

  get length(): number {
    return this.#items.length - this.#first
  }

  get first(): Item | undefined {
    return this.#items[this.#first]
  }

  get last(): Item | undefined {
    return this.length === 0 ? undefined : this.#items.at(-1)
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  /** Removes the first item. */
  shift(): void {
    this.#first++
    if (this.#first === this.#items.length) {
      this.#items.length = 0
      this.#first = 0
    } else if (this.#first > 1024) {
      this.#items.splice(0, this.#first)
      this.#first = 0
    }
  }
}
