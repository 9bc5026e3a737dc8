import { MapReply, parseInfo, type RespValue } from '@firebreak/core/resp'

/** A reply as text; bytes are assumed to be UTF-8. */
export function text(reply: RespValue | undefined): string {
  if (typeof reply === 'string') return reply
  if (reply instanceof Uint8Array) return Buffer.from(reply.buffer, reply.byteOffset, reply.length).toString()
  return reply === null || reply === undefined ? '' : String(reply)
}

/** A reply as bytes. */
export function bytes(reply: RespValue | undefined): Buffer {
  if (reply instanceof Uint8Array) return Buffer.from(reply.buffer, reply.byteOffset, reply.length)
  return Buffer.from(text(reply))
}

/** A reply as a list; empty if it is not one. */
export function list(reply: RespValue | undefined): readonly RespValue[] {
  if (Array.isArray(reply)) return reply as readonly RespValue[]
  return reply instanceof MapReply ? reply.items : []
}

/** A flat list of names and values, or a map, by name. */
export function fields(reply: RespValue | undefined): Map<string, RespValue> {
  const items = list(reply)
  const map = new Map<string, RespValue>()
  for (let index = 0; index + 1 < items.length; index += 2) map.set(text(items[index]), items[index + 1]!)
  return map
}

/** A reply as a number; NaN if it is not one. */
export function number(reply: RespValue | undefined): number {
  return typeof reply === 'number'
    ? reply
    : typeof reply === 'bigint'
      ? Number(reply)
      : Number(text(reply) || Number.NaN)
}

/** The fields of an INFO reply. */
export function infoFields(reply: RespValue | undefined): Map<string, string> {
  return parseInfo(text(reply))
}
