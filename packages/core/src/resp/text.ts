/**
 * Text and bytes, fast for the short strings that Redis traffic is made of.
 *
 * `TextDecoder` and `TextEncoder` cost a hundred nanoseconds and more a call, whatever the length. Short ASCII is
 * therefore turned by hand; longer text in a Node `Buffer` (as a socket's chunks are) by the Buffer, in two thirds of
 * `TextDecoder`'s time; all else by the web's classes. All give the same text: broken UTF-8 becomes U+FFFD, a lone
 * surrogate EF BF BD.
 */
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

interface NodeBuffer extends Uint8Array {
  utf8Slice?(start: number, end: number): string
  utf8Write?(text: string, offset: number, length: number): number
}

interface NodeBufferClass {
  byteLength(text: string): number
  allocUnsafe(length: number): Uint8Array
  allocUnsafeSlow(length: number): Uint8Array
}

const nodeBuffer = (globalThis as { Buffer?: NodeBufferClass }).Buffer

// Up to here a loop of ours is faster than the way into native code.
const shortBytes = 16

/**
 * Memory that will be written all over, not zeroed where Node can give that. `isShort` says that it does not live long
 * and may come from Node's pool, a fraction of the price of memory of its own.
 */
export function rawBytes(length: number, isShort = false): Uint8Array {
  if (nodeBuffer === undefined) return new Uint8Array(length)
  return isShort ? nodeBuffer.allocUnsafe(length) : nodeBuffer.allocUnsafeSlow(length)
}

/** All the bytes of `parts`, one behind the other. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const all = rawBytes(length)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** The text of the UTF-8 bytes from `start` to `end`. */
export function textOf(bytes: Uint8Array, start = 0, end: number = bytes.length): string {
  return (end - start <= shortBytes ? shortAscii(bytes, start, end) : undefined) ?? longText(bytes, start, end)
}

/** The text where all of it is ASCII. Eight characters at a time: half of the strings in between. */
function shortAscii(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = ''
  let at = start
  for (; at + 8 <= end; at += 8) {
    const [a, b, c, d] = [bytes[at]!, bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!]
    const [e, f, g, h] = [bytes[at + 4]!, bytes[at + 5]!, bytes[at + 6]!, bytes[at + 7]!]
    if ((a | b | c | d | e | f | g | h) > 0x7f) return undefined
    text += String.fromCharCode(a, b, c, d, e, f, g, h)
  }
  for (; at < end; at++) {
    const byte = bytes[at]!
    if (byte > 0x7f) return undefined
    text += String.fromCharCode(byte)
  }
  return text
}

function longText(bytes: Uint8Array, start: number, end: number): string {
  // What `toString` of a Buffer calls after it has read its arguments.
  const buffer = bytes as NodeBuffer
  if (buffer.utf8Slice !== undefined) return buffer.utf8Slice(start, end)
  return decoder.decode(bytes.subarray(start, end))
}

/** How many bytes `text` has in UTF-8. */
export function utf8Length(text: string): number {
  if (nodeBuffer !== undefined && text.length > shortBytes) return nodeBuffer.byteLength(text)
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    bytes += unit < 0x800 ? 1 : 2
    // A pair of surrogates is four bytes together: two of them counted by length, two by the first half.
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(index + 1)
      if (next >= 0xdc00 && next < 0xe000) index++
    }
  }
  return bytes
}

/** Writes the UTF-8 bytes of `text`, of which there are `length`, at `offset`. */
export function writeUtf8(target: Uint8Array, offset: number, text: string, length: number): void {
  if (length === text.length && length <= shortBytes * 2) {
    for (let index = 0; index < length; index++) target[offset + index] = text.charCodeAt(index)
    return
  }
  const buffer = target as NodeBuffer
  if (buffer.utf8Write !== undefined) buffer.utf8Write(text, offset, length)
  else encoder.encodeInto(text, target.subarray(offset, offset + length))
}
