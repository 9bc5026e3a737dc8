import type { Upstream } from '../watcher/upstream.ts'

/**
 * Which nodes own the slots of an upstream's hot keys. An upstream does not report when a slot moves, so the slots are
 * checked in turn, a bounded number each time; a standalone server is one node, whatever the slot.
 */
export class SlotOwners {
  readonly #upstream: Upstream
  readonly #keyCounts = new Map<number, number>()
  readonly #slots: number[] = []
  readonly #owners: (string | undefined)[] = []
  readonly #slotCounts = new Map<string, number>()
  #next = 0
  /** Incremented on every change of `nodes`. */
  version = 0

  constructor(upstream: Upstream) {
    this.#upstream = upstream
  }

  /** The nodes that own any of the slots. */
  get nodes(): Iterable<string> {
    return this.#slotCounts.keys()
  }

  /** One more key is hot. */
  add(key: { readonly slot: number }): void {
    const slot = this.#slotOf(key)
    const count = this.#keyCounts.get(slot)
    this.#keyCounts.set(slot, (count ?? 0) + 1)
    if (count !== undefined) return
    const owner = this.#upstream.nodeOf(slot)
    this.#slots.push(slot)
    this.#owners.push(owner)
    this.#count(owner, 1)
  }

  remove(key: { readonly slot: number }): void {
    const slot = this.#slotOf(key)
    // `look` releases the slot when it gets there.
    this.#keyCounts.set(slot, this.#keyCounts.get(slot)! - 1)
  }

  /** Checks up to `most` slots; true if one of them has moved. */
  look(most: number): boolean {
    let hasMoved = false
    for (let left = Math.min(most, this.#slots.length); left > 0 && this.#slots.length > 0; left--) {
      if (this.#next >= this.#slots.length) this.#next = 0
      const at = this.#next
      const slot = this.#slots[at]!
      const before = this.#owners[at]
      if (this.#keyCounts.get(slot) === 0) {
        this.#keyCounts.delete(slot)
        this.#count(before, -1)
        this.#slots[at] = this.#slots.at(-1)!
        this.#owners[at] = this.#owners.at(-1)
        this.#slots.pop()
        this.#owners.pop()
        continue
      }
      this.#next++
      const owner = this.#upstream.nodeOf(slot)
      if (owner === before) continue
      hasMoved = true
      this.#owners[at] = owner
      this.#count(before, -1)
      this.#count(owner, 1)
    }
    return hasMoved
  }

  #slotOf(key: { readonly slot: number }): number {
    return this.#upstream.isCluster ? key.slot : 0
  }

  #count(owner: string | undefined, change: number): void {
    if (owner === undefined) return
    const count = (this.#slotCounts.get(owner) ?? 0) + change
    if (count === 0) this.#slotCounts.delete(owner)
    else this.#slotCounts.set(owner, count)
    if (count === 0 || (count === 1 && change === 1)) this.version++
  }
}
