import { type RespValue, slotCount } from '@firebreak/core'

/** A range of slots and who serves it. */
export interface SlotRange {
  readonly first: number
  readonly last: number
  readonly host: string
  readonly port: number
}

/** Reads the reply to CLUSTER SLOTS; `asked` stands in for a host that the server leaves empty. */
export function slotRangesOf(reply: RespValue, asked: string): SlotRange[] {
  if (!Array.isArray(reply)) return []
  return reply.map((row: readonly RespValue[]) => {
    const [host, port] = row[2] as readonly RespValue[]
    const name = host === null || host === undefined ? '' : String(host)
    return {
      first: Number(row[0]),
      last: Number(row[1]),
      host: name === '' || name === '?' ? asked : name,
      port: Number(port),
    }
  })
}

/** Which node serves which slot. */
export class SlotMap<Node> {
  readonly #owners: (Node | undefined)[] = new Array(slotCount).fill(undefined)

  ownerOf(slot: number): Node | undefined {
    return this.#owners[slot]
  }

  setOwner(slot: number, node: Node): void {
    this.#owners[slot] = node
  }

  /** Takes a whole new map; slots that it does not name have no owner. */
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
