/**
 * Text and bytes, fast for the short strings that Redis traffic is made of.
 *
 * `TextDecoder` and `TextEncoder` cost some hundred nanoseconds a call, whatever the length. Short ASCII is therefore
 * turned by hand; for longer text Node's `Buffer` is used where there is one (two to three times `TextDecoder`), and the
 * web's classes in a browser. All three give the same text: broken UTF-8 becomes U+FFFD, a lone surrogate EF BF BD.
 */
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

interface NodeBuffer extends Uint8Array {
  utf8Slice?(start: number, end: number): string
}

interface NodeBufferClass {
  from(memory: ArrayBufferLike, offset: number, length: number): NodeBuffer & { toString(encoding: 'utf8'): string }
  byteLength(text: string): number
}

const nodeBuffer = (globalThis as { Buffer?: NodeBufferClass }).Buffer

// Below this many bytes a loop of ours is faster than the way into native code.
const shortBytes = 24

/** The text of the UTF-8 bytes from `start` to `end`. */
export function textOf(bytes: Uint8Array, start = 0, end: number = bytes.length): string {
  if (end - start <= shortBytes) {
    let text = ''
    let index = start
    for (; index < end; index++) {
      const byte = bytes[index]!
      if (byte > 0x7f) break
      text += String.fromCharCode(byte)
    }
    if (index === end) return text
  }
  // A socket's chunks are Buffers already; `utf8Slice` is what `toString` calls after it has read its arguments.
  const { utf8Slice } = bytes as NodeBuffer
  if (utf8Slice !== undefined) return utf8Slice.call(bytes, start, end)
  if (nodeBuffer !== undefined) {
    return nodeBuffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')
  }
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
  } else {
    encoder.encodeInto(text, target.subarray(offset, offset + length))
  }
}
