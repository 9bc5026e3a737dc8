import type { IoredisClient } from './ioredis-client.ts'
import { ioredisDouble } from './ioredis-double.ts'

/** How a client of ioredis wants RESP3's own types. */
export interface ReplyMapping {
  /** Of version 6; version 5 knows RESP2 only. */
  readonly protocol: 2 | 3
  /** RESP2's shapes: maps are flat arrays, doubles their text, booleans 1 and 0. */
  readonly isLegacy: boolean
  readonly hasTextNumbers: boolean
}

export function replyMappingOf(client: IoredisClient): ReplyMapping {
  const { options } = client
  const { protocol = 3, replyMapping, stringNumbers } = client.isCluster ? (options.redisOptions ?? {}) : options
  return { protocol, isLegacy: replyMapping !== 'resp3', hasTextNumbers: stringNumbers === true }
}

/** Where a decoder stands in the bytes. */
interface Position {
  at: number
}

/**
 * One whole reply in RESP3 as ioredis' own parser would give it to a command, before the command's reply transformers:
 * text is Buffers (the command decides about strings), and what RESP2 does not have takes RESP2's shape unless the
 * client asked for RESP3's. Doubles keep the server's digits, which a number would lose. Every call makes new Buffers.
 */
export function decodeReply(bytes: Uint8Array, mapping: ReplyMapping): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return decodeAt(buffer, { at: 0 }, mapping)
}

function decodeAt(buffer: Buffer, position: Position, mapping: ReplyMapping): unknown {
  const type = String.fromCharCode(buffer[position.at]!)
  const lineEnd = buffer.indexOf(13, position.at)
  const start = position.at + 1
  position.at = lineEnd + 2
  switch (type) {
    case '+':
    case ',':
      if (type === ',' && (!mapping.isLegacy || mapping.hasTextNumbers)) {
        const text = buffer.toString('latin1', start, lineEnd)
        return mapping.hasTextNumbers ? text : ioredisDouble(text)
      }
      return Buffer.from(buffer.subarray(start, lineEnd))
    case ':': {
      const text = buffer.toString('latin1', start, lineEnd)
      return mapping.hasTextNumbers ? text : Number(text)
    }
    case '(':
      return buffer.toString('latin1', start, lineEnd)
    case '#': {
      const isTrue = buffer[start] === 0x74
      return mapping.isLegacy ? Number(isTrue) : isTrue
    }
    case '_':
      return null
    case '$':
    case '=':
      return decodeBulk(buffer, Number(buffer.toString('latin1', start, lineEnd)), type === '=' ? 4 : 0, position)
    case '%':
      return decodeMap(buffer, Number(buffer.toString('latin1', start, lineEnd)), position, mapping)
    default:
      return decodeItems(buffer, Number(buffer.toString('latin1', start, lineEnd)), position, mapping)
  }
}

function decodeBulk(buffer: Buffer, length: number, skipped: number, position: Position): Buffer | null {
  if (length < 0) return null
  const start = position.at
  position.at += length + 2
  return Buffer.from(buffer.subarray(start + skipped, start + length))
}

function decodeItems(buffer: Buffer, count: number, position: Position, mapping: ReplyMapping): unknown[] | null {
  if (count < 0) return null
  return Array.from({ length: count }, () => decodeAt(buffer, position, mapping))
}

function decodeMap(buffer: Buffer, count: number, position: Position, mapping: ReplyMapping): unknown {
  const items = decodeItems(buffer, count * 2, position, mapping)!
  if (mapping.isLegacy) return items
  const map = Object.create(null) as Record<string, unknown>
  for (let index = 0; index < items.length; index += 2) map[String(items[index])] = items[index + 1]
  return map
}

const pairCommands = new Set(['zdiff', 'zinter', 'zunion', 'zrange', 'zrangebyscore', 'zrevrange', 'zrevrangebyscore'])

/** RESP3 gives members with scores as pairs; a client that only knows RESP2 (ioredis 5) wants them in one flat list. */
export function flattenPairs(commandName: string, value: unknown): unknown {
  if (!Array.isArray(value) || !pairCommands.has(commandName.toLowerCase())) return value
  return value.flat()
}
