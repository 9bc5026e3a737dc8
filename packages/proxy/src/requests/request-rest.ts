/**
 * The rest of a request whose beginning has already been forwarded: finds its end without keeping any of it. Whatever
 * it cannot parse is forwarded, and the server says what is wrong.
 */
export class RequestRest {
  /** Bytes still to come of the current argument, including its line end. */
  #missing: number
  /** Arguments still to come after it. */
  #arguments: number
  #length = 0
  #isInLine = false

  constructor(missingBytes: number, furtherArguments: number) {
    this.#missing = missingBytes
    this.#arguments = furtherArguments
  }

  get isDone(): boolean {
    return this.#missing === 0 && this.#arguments === 0
  }

  /** The offset after the last byte before `end` that belongs to the request. */
  take(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    while (at < end && !this.isDone) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, end - at)
        at += taken
        this.#missing -= taken
      } else at = this.#line(bytes, at, end)
    }
    return at
  }

  /** Continues reading the line `$length` before an argument. */
  #line(bytes: Uint8Array, start: number, end: number): number {
    if (!this.#isInLine) {
      this.#isInLine = true
      this.#length = 0
    }
    for (let at = start; at < end; at++) {
      const byte = bytes[at]!
      if (byte >= 0x30 && byte <= 0x39) this.#length = this.#length * 10 + byte - 0x30
      if (byte !== 0x0a) continue
      this.#isInLine = false
      this.#arguments--
      this.#missing = this.#length + 2
      return at + 1
    }
    return end
  }
}
