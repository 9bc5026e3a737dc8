import { eventTrouble, type OrderEvent } from '../store/order-store.ts'

/** One entry of an orders stream: its id and its fields, name and value in turn. */
export interface StreamEntry {
  readonly id: string
  readonly fields: readonly string[]
}

/** A parsed entry: what happened, and the same user's previous entry. */
export interface OrderEntry {
  readonly entry: StreamEntry
  readonly event: OrderEvent
  /** Undefined: the user's first. */
  readonly previous: string | undefined
}

export type ParsedEntry =
  | ({ readonly kind: 'event' } & OrderEntry)
  | { readonly kind: 'poison'; readonly reason: string }

const kinds = new Set(['placed', 'paid', 'cancelled', 'expired', 'refunded'])

/** The fields of an entry by name. */
export function fieldsOf(entry: StreamEntry): Map<string, string> {
  const fields = new Map<string, string>()
  for (let index = 0; index + 1 < entry.fields.length; index += 2)
    fields.set(entry.fields[index]!, entry.fields[index + 1]!)
  return fields
}

/** Parses an entry; if no worker can ever store it, says why. */
export function parseEntry(voucherId: string, entry: StreamEntry): ParsedEntry {
  const fields = fieldsOf(entry)
  const poison = (reason: string): ParsedEntry => ({ kind: 'poison', reason })
  const kind = fields.get('kind') ?? ''
  if (!kinds.has(kind)) return poison(`its kind is "${kind}"`)
  const event: OrderEvent = {
    kind: kind as OrderEvent['kind'],
    voucherId,
    orderId: fields.get('order') ?? '',
    userId: fields.get('user') ?? '',
    number: wholeNumber(fields.get('number')),
    at: wholeNumber(fields.get('at')),
    ...optional('total', fields.get('total')),
    ...optional('limit', fields.get('limit')),
  }
  const trouble = eventTrouble(event)
  if (trouble !== undefined) return poison(trouble)
  const previous = fields.get('prev')
  return { kind: 'event', entry, event, previous: isEntryId(previous) ? previous : undefined }
}

function wholeNumber(text: string | undefined): number {
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}

function optional(name: 'total' | 'limit', text: string | undefined): Partial<OrderEvent> {
  const value = wholeNumber(text)
  return Number.isNaN(value) ? {} : { [name]: value }
}

/** The whole id of an entry, with both of its numbers. */
export function isEntryId(text: string | undefined): text is string {
  return text !== undefined && /^\d+-\d+$/.test(text)
}

/** The order of two entry ids: negative if the first is older. */
export function compareIds(first: string, second: string): number {
  const [firstMs, firstSequence] = first.split('-').map(Number) as [number, number]
  const [secondMs, secondSequence] = second.split('-').map(Number) as [number, number]
  return firstMs - secondMs || firstSequence - secondSequence
}

/**
 * The entries of a reply to XREADGROUP on one stream: a pair in a list, or a RESP3 map in the form of one client or
 * another.
 */
export function streamEntries(reply: unknown): StreamEntry[] {
  return entriesOf(streamPairs(reply))
}

/** The ids of entries that were deleted from the stream but are still pending. */
export function deletedIds(reply: unknown): string[] {
  const pairs = (streamPairs(reply) ?? []) as ([string, string[] | null] | null)[]
  return pairs.flatMap((pair) => (pair !== null && pair[1] === null ? [pair[0]] : []))
}

function streamPairs(reply: unknown): unknown {
  if (reply === null || reply === undefined) return []
  if (reply instanceof Map) return [...reply.values()][0]
  if (!Array.isArray(reply)) return Object.values(reply)[0]
  return Array.isArray(reply[0]) ? reply[0][1] : reply[1]
}

/** Pairs of id and fields; an entry deleted meanwhile is null. */
export function entriesOf(reply: unknown): StreamEntry[] {
  const pairs = (reply ?? []) as ([string, string[] | null] | null)[]
  return pairs.flatMap((pair) => (pair === null || pair[1] === null ? [] : [{ id: pair[0], fields: pair[1] }]))
}
