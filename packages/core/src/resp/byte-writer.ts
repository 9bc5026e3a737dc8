import { utf8Length, writeUtf8 } from './text.ts'

/** Bytes that grow at the end; `take` hands them over and starts anew. */
export class ByteWriter {
  #bytes: Uint8Array
  #length = 0

  constructor(initialBytes = 256) {
    this.#bytes = new Uint8Array(initialBytes)
  }

  get length(): number {
    return this.#length
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  bytes(source: Uint8Array): void {
    this.#reserve(source.length)
    this.#bytes.set(source, this.#length)
    this.#length += source.length
  }

  text(text: string): void {
    const length = utf8Length(text)
    this.#reserve(length)
    writeUtf8(this.#bytes, this.#length, text, length)
    this.#length += length
  }

  /** What was written. The writer lets go of it, so it stays as it is. */
  take(): Uint8Array {
    const written = this.#bytes.subarray(0, this.#length)
    this.#bytes = new Uint8Array(256)
    this.#length = 0
    return written
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}
