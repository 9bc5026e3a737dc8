import { encodeCommand } from '@firebreak/core/resp'
import { markerOf } from './own-names.ts'

const multi = encodeCommand(['MULTI'])
const exec = encodeCommand(['EXEC'])

/** A copy's reply, and the version it belongs to. */
export interface CopyReading {
  /** The reply's bytes, valid during the call only. */
  readonly reply: Uint8Array
  /** Undefined if there is no marker: nothing vouches for the copy. */
  readonly version: number | undefined
}

/** The bytes that read a copy and its marker atomically: MULTI, GET marker, the command, EXEC. */
export function encodeCopyRead(copy: Uint8Array, command: Uint8Array): Uint8Array {
  return Buffer.concat([multi, encodeCommand(['GET', markerOf(copy)]), command, exec])
}

/** Number of replies to `encodeCopyRead`; the last is EXEC's. */
export const copyReadReplies = 4

/** EXEC's answer; undefined if it, or the command in it, is an error. */
export function parseCopyRead(reply: Uint8Array, key: Uint8Array): CopyReading | undefined {
  if (reply[0] !== 0x2a || reply[1] !== 0x32) return undefined
  const { marker, end } = readMarker(reply, 4)
  const rest = reply.subarray(end)
  if (rest[0] === 0x2d || rest[0] === 0x21) return undefined
  const bar = marker?.indexOf(0x7c) ?? -1
  // A marker of another key: the name is taken, and not by us.
  const isOurs = marker !== undefined && bar > 0 && marker.subarray(bar + 1).equals(key)
  return { reply: rest, version: isOurs ? Number(marker.toString('latin1', 0, bar)) : undefined }
}

/** A bulk string or null at an offset, and where it ends. */
function readMarker(reply: Uint8Array, start: number): { marker: Buffer | undefined; end: number } {
  const lineEnd = reply.indexOf(0x0d, start)
  const length = reply[start] === 0x24 ? Number(Buffer.from(reply.subarray(start + 1, lineEnd)).toString('latin1')) : -1
  const from = lineEnd + 2
  if (!(length >= 0)) return { marker: undefined, end: from }
  return { marker: Buffer.from(reply.subarray(from, from + length)), end: from + length + 2 }
}
