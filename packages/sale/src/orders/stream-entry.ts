import type { OrderEvent } from '../store/order-store.ts'

/** One entry of an orders stream: its id and its fields, name and value in turn. */
export interface StreamEntry {
  readonly id: string
  readonly fields: readonly string[]
}

export type ParsedEntry =
  | { readonly kind: 'event'; readonly event: OrderEvent }
  | { readonly kind: 'poison'; readonly reason: string }

const kinds = new Set(['placed', 'paid', 'cancelled', 'expired'])

/** Reads an entry; one that no worker can ever store says why. */
export function parseEntry(voucherId: string, entry: StreamEntry): ParsedEntry {
  const fields = new Map<string, string>()
  for (let index = 0; index + 1 < entry.fields.length; index += 2)
    fields.set(entry.fields[index]!, entry.fields[index + 1]!)
  const kind = fields.get('kind') ?? ''
  const orderId = fields.get('order') ?? ''
  const userId = fields.get('user') ?? ''
  const number = Number(fields.get('number'))
  const at = Number(fields.get('at'))
  const poison = (reason: string): ParsedEntry => ({ kind: 'poison', reason })
  if (!kinds.has(kind)) return poison(`its kind is "${kind}"`)
  if (orderId === '' || orderId.length > 64) return poison('its order id is missing or too long')
  if (userId === '' || userId.length > 255) return poison('its user id is missing or too long')
  if (!Number.isSafeInteger(number) || number < 1) return poison(`its number is "${fields.get('number')}"`)
  if (!Number.isSafeInteger(at)) return poison(`its time is "${fields.get('at')}"`)
  return { kind: 'event', event: { kind: kind as OrderEvent['kind'], voucherId, orderId, userId, number, at } }
}

/** The entries of a reply to XREADGROUP on one stream: a pair in a list, or a RESP3 map as one client or another has it. */
export function streamEntries(reply: unknown): StreamEntry[] {
  if (reply === null || reply === undefined) return []
  if (reply instanceof Map) return entriesOf([...reply.values()][0])
  if (!Array.isArray(reply)) return entriesOf(Object.values(reply)[0])
  return entriesOf(Array.isArray(reply[0]) ? reply[0][1] : reply[1])
}

/** Pairs of id and fields; an entry that was deleted meanwhile comes as null. */
export function entriesOf(reply: unknown): StreamEntry[] {
  const pairs = (reply ?? []) as ([string, string[] | null] | null)[]
  return pairs.flatMap((pair) => (pair === null || pair[1] === null ? [] : [{ id: pair[0], fields: pair[1] }]))
}
