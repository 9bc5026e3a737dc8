/** A growing byte buffer for frames: varints (LEB128, unsigned, up to 2^53), bytes and text. */
export class VarintWriter {
  #bytes: Uint8Array
  #length = 0

  constructor(capacity = 1024) {
    this.#bytes = new Uint8Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  varint(value: number): void {
    this.#reserve(8)
    if (value < 0x80) {
      this.#bytes[this.#length++] = value
      return
    }
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  /** Writes the bytes without a length prefix. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** A varint length and the bytes from `start` to `end`. */
  range(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    this.varint(length)
    this.#reserve(length)
    const own = this.#bytes
    let at = this.#length
    // Keys are short: a loop is faster than a call into native code.
    for (let index = start; index < end; index++) own[at++] = bytes[index]!
    this.#length = at
  }

  /** A varint length and the UTF-8 bytes of the text, encoded in place. */
  text(text: string): void {
    // A UTF-16 unit takes at most three bytes. ASCII, the usual case, is written by hand.
    this.#reserve(text.length * 3 + 5)
    let isAscii = text.length < 0x80
    const start = this.#length
    this.#bytes[this.#length++] = text.length
    for (let index = 0; isAscii && index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code > 0x7f) isAscii = false
      this.#bytes[this.#length++] = code
    }
    if (isAscii) return
    this.#length = start
    const bytes = encoder.encode(text)
    this.varint(bytes.length)
    this.raw(bytes)
  }

  /** The written bytes, without a copy: valid until the writer is used again. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Starts over with the same memory. */
  clear(): void {
    this.#length = 0
  }

  /** A copy of the written bytes. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + count))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/**
 * Reads what `VarintWriter` wrote. Never throws: reading past the end, or a varint over 2^53, returns 0 and sets
 * `isBroken`, which the caller checks once at the end, so the loop over entries needs no branch for errors.
 */
export class VarintReader {
  readonly bytes: Uint8Array
  position: number
  readonly end: number
  isBroken = false

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.bytes = bytes
    this.position = start
    this.end = end
  }

  get isAtEnd(): boolean {
    return this.position >= this.end
  }

  byte(): number {
    if (this.position >= this.end) {
      this.isBroken = true
      return 0
    }
    return this.bytes[this.position++]!
  }

  varint(): number {
    const first = this.byte()
    if (first < 0x80) return first
    let value = first & 0x7f
    let factor = 0x80
    for (let count = 0; count < 7; count++) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) break
        return value
      }
      factor *= 0x80
    }
    this.isBroken = true
    return 0
  }

  /** Skips `count` bytes and returns where they start. */
  skip(count: number): number {
    const start = this.position
    if (count > this.end - start) {
      this.isBroken = true
      this.position = this.end
      return start
    }
    this.position = start + count
    return start
  }

  /** A view of the next length-prefixed bytes, not copied. */
  view(): Uint8Array {
    const length = this.varint()
    const start = this.skip(length)
    return this.bytes.subarray(start, this.isBroken ? start : start + length)
  }

  text(): string {
    return decoder.decode(this.view())
  }
}
