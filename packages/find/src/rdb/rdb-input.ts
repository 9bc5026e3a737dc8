import { RdbError } from '../errors.ts'
import { Crc64 } from './crc64.ts'

/**
 * The bytes of a dump as they arrive: a window over them, a position that may run ahead of the window (skipping a
 * gigabyte costs nothing), and the checksum of everything passed.
 *
 * Reading takes two steps: `has(n)` asks whether n bytes can be read now (also true at the end of the input, so that
 * the read itself then fails with the offset), and the readers below take them. A caller that gets `false` returns to
 * the start of its item and waits for the next `push`.
 */
export class RdbInput {
  bytes: Buffer = Buffer.alloc(0)
  /** Index of the next byte in `bytes`; past `end` while skipping bytes that have not arrived yet. */
  position = 0
  end = 0
  /** Describes the string whose header was read last. */
  headKind: 'plain' | 'integer' | 'compressed' = 'plain'
  /** Its length in the server, and how many bytes follow in the dump. */
  headLength = 0
  headStored = 0
  headInteger = 0
  readonly totalBytes: number | undefined
  #base = 0
  #checked = 0
  #isEnded = false
  readonly #crc = new Crc64()

  constructor(totalBytes: number | undefined) {
    this.totalBytes = totalBytes
  }

  /** How far reading has got in the dump. */
  get offset(): number {
    return this.#base + this.position
  }

  get checksum(): bigint {
    this.#check()
    return this.#crc.value
  }

  /** Adds a copy of these bytes. */
  push(chunk: Uint8Array): void {
    this.reserve(chunk.length).set(chunk)
    this.grow(chunk.length)
  }

  /** Makes room for `count` more bytes after those that are still needed; `grow` says how many were written. */
  reserve(count: number): Buffer {
    this.#check()
    const kept = Math.max(0, this.end - this.position)
    const ahead = Math.max(0, this.position - this.end)
    this.#base += this.end - kept
    if (kept + count > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(kept + count)
      this.bytes.copy(larger, 0, this.end - kept, this.end)
      this.bytes = larger
    } else if (kept > 0) {
      this.bytes.copyWithin(0, this.end - kept, this.end)
    }
    this.end = kept
    this.position = ahead
    this.#checked = 0
    return this.bytes.subarray(kept, kept + count)
  }

  grow(count: number): void {
    this.end += count
  }

  /** No more bytes will arrive: reads past the end now fail. */
  finish(): void {
    this.#isEnded = true
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  has(count: number): boolean {
    return this.end - this.position >= count || this.#isEnded
  }

  byte(): number {
    if (this.position >= this.end) this.#truncated()
    return this.bytes[this.position++]!
  }

  /** Skips bytes, whether they have arrived or not. */
  skip(count: number): void {
    if (this.totalBytes !== undefined && this.offset + count > this.totalBytes) {
      throw new RdbError(
        'FB_RDB_TRUNCATED',
        `${count} more bytes should follow, but the file ends at byte ${this.totalBytes}; it is truncated or damaged`,
        this.offset,
      )
    }
    this.position += count
    if (this.#isEnded && this.position > this.end) this.#truncated()
  }

  /** A length or count. */
  length(): number {
    const at = this.offset
    const value = this.#number()
    if (value < 0) this.fail('expected a length, found an encoded string', at)
    if (value > Number.MAX_SAFE_INTEGER) this.fail(`a length of ${value} is impossible`, at)
    return value
  }

  /** A number of up to 64 bits, as precisely as a double allows. */
  number(): number {
    const at = this.offset
    const value = this.#number()
    if (value < 0) this.fail('expected a number, found an encoded string', at)
    return value
  }

  /** A number, or −1 minus the encoding if a specially encoded string begins. */
  #number(): number {
    const first = this.byte()
    switch (first >> 6) {
      case 0:
        return first & 63
      case 1:
        return ((first & 63) << 8) | this.byte()
      case 3:
        return -1 - (first & 63)
    }
    if (first === 0x80) {
      this.need(4)
      this.position += 4
      return this.bytes.readUInt32BE(this.position - 4)
    }
    if (first !== 0x81) this.fail(`${first} does not begin a length`, this.offset - 1)
    this.need(8)
    this.position += 8
    return this.bytes.readUInt32BE(this.position - 8) * 2 ** 32 + this.bytes.readUInt32BE(this.position - 4)
  }

  /** Reads the header of a string. */
  readHead(): void {
    const at = this.offset
    const value = this.#number()
    if (value >= 0) {
      if (value > Number.MAX_SAFE_INTEGER) this.fail(`a string of ${value} bytes is impossible`, at)
      this.headKind = 'plain'
      this.headLength = value
      this.headStored = value
      return
    }
    if (value === -4) {
      this.headKind = 'compressed'
      this.headStored = this.length()
      this.headLength = this.length()
      // A back reference of 3 bytes makes at most 264.
      if (this.headLength > this.headStored * 264) {
        this.fail(`${this.headStored} compressed bytes cannot hold ${this.headLength}`, at)
      }
      return
    }
    const bytes = value === -1 ? 1 : value === -2 ? 2 : value === -3 ? 4 : 0
    if (bytes === 0) this.fail(`string encoding ${-1 - value} is unknown`, at)
    this.need(bytes)
    this.headKind = 'integer'
    this.headInteger = this.bytes.readIntLE(this.position, bytes)
    this.position += bytes
    this.headLength = String(this.headInteger).length
    this.headStored = 0
  }

  /** Fails if the next `count` bytes are missing although the input has ended. */
  need(count: number): void {
    if (this.end - this.position < count) this.#truncated()
  }

  fail(message: string, offset: number = this.offset): never {
    throw new RdbError('FB_RDB_CORRUPT', message, offset)
  }

  #truncated(): never {
    throw new RdbError(
      'FB_RDB_TRUNCATED',
      'the dump ends in the middle of an item; it is truncated or was still being written',
      this.#base + this.end,
    )
  }

  #check(): void {
    const until = Math.min(this.position, this.end)
    this.#crc.update(this.bytes, this.#checked, until)
    this.#checked = until
  }
}
