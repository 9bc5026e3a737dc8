import { encodeCommand } from '@firebreak/core/resp'

const multi = encodeCommand(['MULTI'])
const exec = encodeCommand(['EXEC'])

/** A key's reply with its remaining time, read in one transaction. */
export interface KeyReading {
  /** The reply's bytes, valid during the call only. */
  readonly reply: Uint8Array
  /** The PTTL: −1 no expiry, −2 no such key, otherwise milliseconds. */
  readonly pttlMs: number
}

/** The bytes that read a key and its remaining time atomically: MULTI, PTTL, the command, EXEC. */
export function encodeKeyRead(key: Uint8Array, command: Uint8Array): Uint8Array {
  return Buffer.concat([multi, encodeCommand(['PTTL', key]), command, exec])
}

/** Number of replies to `encodeKeyRead`; the last is EXEC's. */
export const keyReadReplies = 4

/** EXEC's answer; undefined if it, or the command in it, is an error: then the application asks itself. */
export function parseKeyRead(reply: Uint8Array): KeyReading | undefined {
  // *2\r\n:PTTL\r\nREPLY
  if (reply[0] !== 0x2a || reply[1] !== 0x32 || reply[4] !== 0x3a) return undefined
  let at = 5
  const isNegative = reply[at] === 0x2d
  if (isNegative) at++
  let pttlMs = 0
  for (; reply[at] !== 0x0d; at++) pttlMs = pttlMs * 10 + (reply[at]! - 0x30)
  const rest = reply.subarray(at + 2)
  const isError = rest[0] === 0x2d || rest[0] === 0x21
  return isError ? undefined : { reply: rest, pttlMs: isNegative ? -pttlMs : pttlMs }
}
