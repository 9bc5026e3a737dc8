/** The end of a list. */
export const none = -1

/**
 * Doubly linked lists over slots. Several lists share the two arrays, since a slot is in at most one of them at a time;
 * a list is a number below `listCount`. Heads are the newest, tails the oldest.
 */
export class SlotLists {
  readonly next: Int32Array
  readonly previous: Int32Array
  readonly #heads: Int32Array
  readonly #tails: Int32Array
  readonly #sizes: Int32Array

  constructor(capacity: number, listCount: number) {
    this.next = new Int32Array(capacity).fill(none)
    this.previous = new Int32Array(capacity).fill(none)
    this.#heads = new Int32Array(listCount).fill(none)
    this.#tails = new Int32Array(listCount).fill(none)
    this.#sizes = new Int32Array(listCount)
  }

  head(list: number): number {
    return this.#heads[list]!
  }

  tail(list: number): number {
    return this.#tails[list]!
  }

  size(list: number): number {
    return this.#sizes[list]!
  }

  addHead(list: number, slot: number): void {
    const head = this.#heads[list]!
    this.previous[slot] = none
    this.next[slot] = head
    if (head === none) this.#tails[list] = slot
    else this.previous[head] = slot
    this.#heads[list] = slot
    this.#sizes[list]!++
  }

  remove(list: number, slot: number): void {
    const before = this.previous[slot]!
    const after = this.next[slot]!
    if (before === none) this.#heads[list] = after
    else this.next[before] = after
    if (after === none) this.#tails[list] = before
    else this.previous[after] = before
    this.#sizes[list]!--
  }

  clear(): void {
    this.#heads.fill(none)
    this.#tails.fill(none)
    this.#sizes.fill(0)
  }
}
