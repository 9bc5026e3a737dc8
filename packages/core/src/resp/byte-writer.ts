import { utf8Length, writeUtf8 } from './text.ts'

const noBytes = new Uint8Array(0)

/** A byte buffer that grows at the end; `take` hands over its contents and starts over. */
export class ByteWriter {
  #bytes: Uint8Array = noBytes
  #length = 0

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

  /** The written bytes. The writer keeps no reference, so they never change. */
  take(): Uint8Array {
    const written = this.#bytes.subarray(0, this.#length)
    this.#bytes = noBytes
    this.#length = 0
    return written
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2, 128))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}
