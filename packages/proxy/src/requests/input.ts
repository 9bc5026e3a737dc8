/** Bytes from a client that are not requests yet: the rest of a chunk, or a partial request. */
export class Input {
  #bytes: Buffer | undefined
  #start = 0
  #end = 0

  get isEmpty(): boolean {
    return this.#start === this.#end
  }

  /** Number of bytes held. */
  get length(): number {
    return this.#end - this.#start
  }

  get bytes(): Buffer {
    return this.#bytes!
  }

  get start(): number {
    return this.#start
  }

  get end(): number {
    return this.#end
  }

  /** Appends bytes; `missing` more are known to follow. */
  add(bytes: Uint8Array, start: number, end: number, missing = 0): void {
    const length = end - start
    const have = this.#end - this.#start
    if (this.#bytes === undefined || this.#end + length > this.#bytes.length) this.#reserve(have + length + missing)
    this.#bytes!.set(bytes.subarray(start, end), this.#end)
    this.#end += length
  }

  /** The bytes before `offset` have been processed. */
  consume(offset: number): void {
    this.#start = offset
    if (offset < this.#end) return
    this.#start = this.#end = 0
    // A buffer that grew for one large request is not kept.
    if (this.#bytes !== undefined && this.#bytes.length > keptBytes) this.#bytes = undefined
  }

  clear(): void {
    this.#bytes = undefined
    this.#start = this.#end = 0
  }

  #reserve(needed: number): void {
    const have = this.#end - this.#start
    const old = this.#bytes
    if (old !== undefined && needed <= old.length && this.#start > 0) old.copyWithin(0, this.#start, this.#end)
    else {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, have * 2, 1024))
      if (old !== undefined) larger.set(old.subarray(this.#start, this.#end))
      this.#bytes = larger
    }
    this.#start = 0
    this.#end = have
  }
}

const keptBytes = 16 * 1024
