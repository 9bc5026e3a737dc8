import { textOf } from '../resp/text.ts'
import { MapReply, type RespValue } from '../resp/value.ts'
import { slotCount } from './key-slot.ts'

/** Where a cluster node listens. */
export interface SlotNode {
  readonly host: string
  readonly port: number
}

/** A range of slots and the nodes that serve it. */
export interface SlotRange {
  readonly first: number
  readonly last: number
  readonly master: SlotNode
  readonly replicas: readonly SlotNode[]
}

/**
 * Parses the reply to CLUSTER SLOTS. `asked` is the host that was asked: it is used for a node that does not know its
 * own host (empty, or null with `cluster-preferred-endpoint-type unknown-endpoint`). A node that should have a hostname
 * but has none is `?`; its IP address is then in its metadata. An unreadable row is left out: MOVED repairs a map with
 * a hole.
 */
export function readClusterSlots(reply: RespValue, asked: string): SlotRange[] {
  if (!isList(reply)) return []
  return reply.flatMap((row) => {
    if (!isList(row)) return []
    const [first, last] = [slotOf(row[0]), slotOf(row[1])]
    const nodes = row.slice(2).map((node) => readNode(node, asked))
    const [master, ...replicas] = nodes
    if (master === undefined || first === undefined || last === undefined || first > last) return []
    return [{ first, last, master, replicas: replicas.filter((node) => node !== undefined) }]
  })
}

function readNode(entry: RespValue, asked: string): SlotNode | undefined {
  if (!isList(entry)) return undefined
  const port = Number(entry[1])
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined
  const name = textIn(entry[0])
  const host = name === '?' ? metadata(entry[3]).get('ip') : name
  return { host: (host ?? '').replace(/^\[|\]$/g, '') || asked, port }
}

/** The name-value pairs after a node's id. */
function metadata(value: RespValue | undefined): Map<string, string> {
  const items = value instanceof MapReply ? value.items : isList(value) ? value : []
  const pairs = new Map<string, string>()
  for (let index = 0; index + 1 < items.length; index += 2) pairs.set(textIn(items[index]), textIn(items[index + 1]))
  return pairs
}

function isList(value: RespValue | undefined): value is readonly RespValue[] {
  return Array.isArray(value)
}

function slotOf(value: RespValue | undefined): number | undefined {
  const slot = Number(value)
  return Number.isInteger(slot) && slot >= 0 && slot < slotCount ? slot : undefined
}

function textIn(value: RespValue | undefined): string {
  if (value instanceof Uint8Array) return textOf(value)
  return typeof value === 'string' ? value : ''
}
