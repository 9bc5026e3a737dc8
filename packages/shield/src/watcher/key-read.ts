import { encodeCommand } from '@firebreak/core/resp'

const multi = encodeCommand(['MULTI'])
const exec = encodeCommand(['EXEC'])

/** A key's reply with the time it may live, as one transaction read both. */
export interface KeyReading {
  /** The reply's bytes, valid during the call only. */
  readonly reply: Uint8Array
  /** What PTTL said: −1 for ever, −2 no such key, else milliseconds. */
  readonly pttlMs: number
}

/** The bytes that read a key and its remaining time at one instant: MULTI, PTTL, the command, EXEC. */
export function encodeKeyRead(key: Uint8Array, command: Uint8Array): Uint8Array {
  return Buffer.concat([multi, encodeCommand(['PTTL', key]), command, exec])
}

/** How many replies `encodeKeyRead` gets; the last is EXEC's. */
export const keyReadReplies = 4

/** What EXEC answered; undefined where it, or the command in it, is an error: then the application asks itself. */
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
