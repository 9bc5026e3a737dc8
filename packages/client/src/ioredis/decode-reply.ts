import type { IoredisClient } from './ioredis-client.ts'
import { ioredisDouble } from './ioredis-double.ts'

/** How an ioredis client wants RESP3 types returned. */
export interface ReplyMapping {
  /** Since version 6; version 5 only knows RESP2. */
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

/** A decoder's position in the bytes. */
interface Position {
  at: number
}

/**
 * Decodes one whole RESP3 reply the way ioredis' own parser would return it to a command, before the command's reply
 * transformers: text is Buffers (the command decides about strings), and types that RESP2 lacks take their RESP2 shape
 * unless the client asked for RESP3. Doubles keep the server's digits, which a number would lose. Every call creates
 * new Buffers.
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
