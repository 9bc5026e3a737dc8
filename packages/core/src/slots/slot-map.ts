import { slotCount } from './key-slot.ts'

/** Which node serves which slot. */
export class SlotMap<Node> {
  readonly #owners: (Node | undefined)[] = new Array(slotCount).fill(undefined)

  ownerOf(slot: number): Node | undefined {
    return this.#owners[slot]
  }

  setOwner(slot: number, node: Node): void {
    this.#owners[slot] = node
  }

  /** Replaces the whole map; slots that it does not name have no owner. */
  replace(ranges: readonly { readonly first: number; readonly last: number; readonly node: Node }[]): void {
    this.#owners.fill(undefined)
    for (const { first, last, node } of ranges) this.#owners.fill(node, first, last + 1)
  }

  /** Every owner once, in the order of their first slots. */
  owners(): Node[] {
    return [...new Set(this.#owners)].filter((node) => node !== undefined)
  }

  /** The first slot of every owner, in order. */
  firstSlots(): number[] {
    const slots = new Map<Node, number>()
    let last: Node | undefined
    for (const [slot, node] of this.#owners.entries()) {
      if (node === last) continue
      last = node
      if (node !== undefined && !slots.has(node)) slots.set(node, slot)
    }
    return [...slots.values()]
  }

  get isWhole(): boolean {
    return !this.#owners.includes(undefined)
  }
}
