/** Writes ZooKeeper's serialization: big-endian numbers, length-prefixed text and bytes. */
export class JuteWriter {
  readonly #parts: Buffer[] = []

  int(value: number): this {
    const part = Buffer.allocUnsafe(4)
    part.writeInt32BE(value)
    this.#parts.push(part)
    return this
  }

  long(value: bigint): this {
    const part = Buffer.allocUnsafe(8)
    part.writeBigInt64BE(value)
    this.#parts.push(part)
    return this
  }

  bool(value: boolean): this {
    this.#parts.push(Buffer.of(value ? 1 : 0))
    return this
  }

  bytes(value: Uint8Array): this {
    this.int(value.length)
    this.#parts.push(Buffer.from(value))
    return this
  }

  text(value: string): this {
    return this.bytes(Buffer.from(value))
  }

  raw(value: Uint8Array): this {
    this.#parts.push(Buffer.from(value))
    return this
  }

  /** Everything written, without a length. */
  done(): Buffer {
    return Buffer.concat(this.#parts)
  }

  /** Everything written, as one packet with its length first. */
  packet(): Buffer {
    const body = this.done()
    return new JuteWriter().int(body.length).raw(body).done()
  }
}

/** Reads what JuteWriter's counterpart on the server wrote; reading past the end throws a RangeError. */
export class JuteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get remaining(): number {
    return this.#bytes.length - this.#at
  }

  int(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  long(): bigint {
    this.#at += 8
    return this.#bytes.readBigInt64BE(this.#at - 8)
  }

  bool(): boolean {
    this.#at += 1
    return this.#bytes.readUInt8(this.#at - 1) !== 0
  }

  /** A length of -1 stands for null and reads as empty. */
  bytes(): Buffer {
    const length = Math.max(0, this.int())
    if (length > this.remaining) throw new RangeError(`${length} bytes wanted, ${this.remaining} left`)
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  text(): string {
    return this.bytes().toString()
  }

  list<T>(item: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int()) }, item)
  }
}
