import { keyBytes, keyName } from '../keys/key-text.ts'
import { VarintReader, VarintWriter } from '../report/varint.ts'
import { encodeFrame, type Frame, FrameError, type InvalidatedKey, type Invalidation } from './frame.ts'

/**
 * The payload of an `invalidate` frame:
 *
 *     text redisClusterId   varint database + 1   varint items (0 = flush), and for each:
 *       varint keyLength   key bytes   varint flags (1 = value, 2 = ttl)
 *       if value: varint length, bytes      if ttl: varint milliseconds
 */
export function encodeInvalidation(invalidation: Invalidation): Uint8Array {
  const writer = new VarintWriter(64)
  writer.text(invalidation.redisClusterId)
  writer.varint(invalidation.database + 1)
  const items = invalidation.kind === 'flush' ? [] : invalidation.items
  writer.varint(items.length)
  for (const { key, value, ttlMs } of items) {
    const bytes = keyBytes(key)
    writer.varint(bytes.length)
    writer.raw(bytes)
    writer.varint((value === undefined ? 0 : 1) + (ttlMs === undefined ? 0 : 2))
    if (value !== undefined) {
      writer.varint(value.length)
      writer.raw(value)
    }
    if (ttlMs !== undefined) writer.varint(Math.max(0, Math.floor(ttlMs)))
  }
  return encodeFrame('invalidate', invalidation.sequence, writer.finish())
}

export function decodeInvalidation(frame: Frame): Invalidation {
  const reader = new VarintReader(frame.bytes, frame.payloadStart)
  const redisClusterId = reader.text()
  const database = reader.varint() - 1
  const count = reader.varint()
  const items: InvalidatedKey[] = []
  for (let index = 0; index < count && !reader.isBroken; index++) {
    const key = keyName(reader.view())
    const flags = reader.varint()
    // An unknown flag brings data of unknown length: the rest cannot be read.
    if (flags > 3) throw new FrameError(`an invalidate frame has flags ${flags}, of a later version`)
    // Copied: `slice` of a `Buffer` is a view, and a small value would keep its whole message in memory.
    const value = flags & 1 ? new Uint8Array(reader.view()) : undefined
    const ttlMs = flags & 2 ? reader.varint() : undefined
    items.push({ key, ...(value !== undefined && { value }), ...(ttlMs !== undefined && { ttlMs }) })
  }
  if (reader.isBroken) throw new FrameError('an invalidate frame is truncated')
  return { sequence: frame.sequence, redisClusterId, database, kind: count === 0 ? 'flush' : 'keys', items }
}
