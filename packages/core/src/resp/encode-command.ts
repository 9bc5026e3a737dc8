import { carriageReturn, lineFeed, marker } from './markers.ts'
import { rawBytes, utf8Length, writeUtf8 } from './text.ts'

/** An argument of a command: text is sent as UTF-8, a number in decimal, bytes unchanged. */
export type CommandArgument = string | number | bigint | Uint8Array

/** Encodes a command the way a client sends it: an array of bulk strings. */
export function encodeCommand(args: readonly CommandArgument[]): Uint8Array {
  const lengths = new Array<number>(args.length)
  const texts = new Array<string | Uint8Array>(args.length)
  let total = headerLength(args.length)
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!
    const text = typeof arg === 'string' || arg instanceof Uint8Array ? arg : String(arg)
    const length = typeof text === 'string' ? utf8Length(text) : text.length
    texts[index] = text
    lengths[index] = length
    total += headerLength(length) + length + 2
  }
  const bytes = rawBytes(total, true)
  let at = writeHeader(bytes, 0, marker.array, args.length)
  for (let index = 0; index < args.length; index++) {
    const text = texts[index]!
    const length = lengths[index]!
    at = writeHeader(bytes, at, marker.bulk, length)
    if (typeof text === 'string') writeUtf8(bytes, at, text, length)
    else bytes.set(text, at)
    at += length
    bytes[at++] = carriageReturn
    bytes[at++] = lineFeed
  }
  return bytes
}

/** Length of a header: type byte, count and line end. */
function headerLength(count: number): number {
  let digits = 1
  for (let rest = count; rest >= 10; rest = Math.floor(rest / 10)) digits++
  return digits + 3
}

function writeHeader(bytes: Uint8Array, at: number, type: number, count: number): number {
  const end = at + headerLength(count)
  bytes[at] = type
  let rest = count
  for (let index = end - 3; index > at; index--) {
    bytes[index] = 0x30 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
  bytes[end - 2] = carriageReturn
  bytes[end - 1] = lineFeed
  return end
}
