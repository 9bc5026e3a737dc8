import { crc32 } from 'node:zlib'

const headBytes = 4

/** A reply's bytes as stored on disk, after their checksum. */
export function encodeRecord(reply: Uint8Array): Buffer {
  const record = Buffer.allocUnsafeSlow(headBytes + reply.length)
  record.writeUInt32BE(crc32(reply))
  record.set(reply, headBytes)
  return record
}

/** The reply in a record; undefined if the bytes are not those that were written. */
export function decodeRecord(record: Buffer): Buffer | undefined {
  if (record.length < headBytes) return undefined
  const reply = record.subarray(headBytes)
  return record.readUInt32BE(0) === crc32(reply) ? reply : undefined
}

const pageBytes = 4096
/** A leaf's entry besides the value: its header, the key, and the free space of a page. */
const entryBytes = 100

/** Roughly how much of the file a record takes: a large one fills whole pages. */
export function recordCost(replyBytes: number): number {
  const length = headBytes + replyBytes + entryBytes
  return length < pageBytes / 2 ? length * 1.5 : Math.ceil(length / pageBytes) * pageBytes + entryBytes
}
