/**
 * Converts between text and bytes, fast for the short strings that Redis traffic consists of.
 *
 * `TextDecoder` and `TextEncoder` cost a hundred nanoseconds and more per call, whatever the length. Short ASCII is
 * therefore converted by hand; longer text in a Node `Buffer` (such as a socket's chunks) by the Buffer, in two thirds
 * of `TextDecoder`'s time; everything else by the web classes. All give the same text: invalid UTF-8 becomes U+FFFD, a
 * lone surrogate EF BF BD.
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

// Up to this length, our loop is faster than a call into native code.
const shortBytes = 16

/**
 * Memory that will be overwritten completely, not zeroed if Node can avoid it. `isShort` says that it is short-lived
 * and may come from Node's pool, at a fraction of the cost.
 */
export function rawBytes(length: number, isShort = false): Uint8Array {
  if (nodeBuffer === undefined) return new Uint8Array(length)
  return isShort ? nodeBuffer.allocUnsafe(length) : nodeBuffer.allocUnsafeSlow(length)
}

/** Concatenates `parts`. */
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

/** The text, if all of it is ASCII. Eight characters at a time, which halves the number of intermediate strings. */
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
  // What a Buffer's `toString` calls after parsing its arguments.
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
    // A surrogate pair takes four bytes: two are counted by length, two at the first half.
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(index + 1)
      if (next >= 0xdc00 && next < 0xe000) index++
    }
  }
  return bytes
}

/** Writes the UTF-8 bytes of `text`, `length` in all, at `offset`. */
export function writeUtf8(target: Uint8Array, offset: number, text: string, length: number): void {
  if (length === text.length && length <= shortBytes * 2) {
    for (let index = 0; index < length; index++) target[offset + index] = text.charCodeAt(index)
    return
  }
  const buffer = target as NodeBuffer
  if (buffer.utf8Write !== undefined) buffer.utf8Write(text, offset, length)
  else encoder.encodeInto(text, target.subarray(offset, offset + length))
}
