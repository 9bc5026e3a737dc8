import { type ResolvedRespLimits, type RespLimits, resolveLimits } from './limits.ts'
import { carriageReturn, lineFeed, marker } from './markers.ts'
import { RespError } from './resp-error.ts'

/** Whether a line of this type has a count or length that determines what follows. */
const isCounted = new Uint8Array(256)
for (const type of 'bulk verbatim blobError streamPart array set map push attribute'.split(' ')) {
  isCounted[marker[type as keyof typeof marker]] = 1
}
/** Types that consist of one line. */
const isPlain = new Uint8Array(256)
for (const type of 'simple error integer null boolean double bigNumber'.split(' ')) {
  isPlain[marker[type as keyof typeof marker]] = 1
}

/**
 * Finds where replies end without decoding them, for code that only forwards bytes.
 *
 * It consumes every byte it is given, wherever a chunk ends: all that it keeps of an unfinished reply is a few numbers
 * (elements to come, the number on the current line, missing bytes of a bulk string). Nested aggregates need no stack,
 * because the elements of all open ones can be summed; only streamed aggregates, whose count is unknown, need a number
 * each. The body of a bulk string is skipped unread, including its line end. Numbers and texts of plain lines are not
 * validated: that is left to the reader.
 */
export class ReplyScanner {
  readonly #limits: ResolvedRespLimits
  /** Elements still to come, for all open aggregates together, or Infinity in a streamed one. */
  #remaining = 0
  /** The value of `#remaining` around each streamed aggregate, and around a counted one inside a streamed one. */
  #outer: number[] = []
  #isInStreamedString = false
  /** Bytes still to come of a bulk string and its line end. */
  #missing = 0
  /** The type of the current line, or 0 between lines. */
  #lineType = 0
  #lineBytes = 0
  #count = 0
  #digits = 0
  #isNegative = false
  #isStreamed = false
  #sawReturn = false
  #firstType = 0
  #isDone = true

  constructor(limits: RespLimits = {}) {
    this.#limits = resolveLimits({ maxElements: 2 ** 32, ...limits })
  }

  /** True when the last `scan` ended at the end of a complete reply (and before the first). */
  get isDone(): boolean {
    return this.#isDone
  }

  /** The first byte of the last scanned reply, after its attributes; `-` means an error. 0 while unknown. */
  get type(): number {
    return this.#firstType
  }

  /** True when the last scanned reply is out of band and answers no request. */
  get isPush(): boolean {
    return this.#firstType === marker.push
  }

  /** Bytes that are certain to follow: the rest of a bulk string, otherwise 0. */
  get missingBytes(): number {
    return this.#missing
  }

  /**
   * Scans the bytes from `start` to `end`, at most to the end of the current reply. Returns the offset after the last
   * byte that belongs to it; `isDone` says whether the reply ends there.
   */
  scan(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (start >= end) return start
    let at = start
    if (this.#isDone) this.#begin()
    while (at < end) {
      if (this.#missing > 0) {
        const taken = Math.min(this.#missing, end - at)
        at += taken
        this.#missing -= taken
        if (this.#missing === 0 && !this.#isInStreamedString) this.#finishElement()
      } else at = this.#lineType === 0 ? this.#wholeLine(bytes, at, end) : this.#restOfLine(bytes, at, end)
      if (this.#isDone) return at
    }
    return at
  }

  #begin(): void {
    this.#isDone = false
    this.#remaining = 1
    this.#firstType = 0
  }

  /** Reads a line that begins at `at`: its type here, the rest as far as it has arrived. */
  #wholeLine(bytes: Uint8Array, at: number, end: number): number {
    const type = bytes[at]!
    if (isCounted[type] === 0 && isPlain[type] === 0 && type !== marker.streamEnd) {
      throw new RespError('FB_RESP_PROTOCOL', `byte ${type} cannot begin a reply`)
    }
    if (this.#isInStreamedString !== (type === marker.streamPart)) {
      throw new RespError('FB_RESP_PROTOCOL', 'a part of a streamed string is missing or out of place')
    }
    if (this.#firstType === 0 && type !== marker.attribute && this.#remaining === 1 && this.#outer.length === 0) {
      this.#firstType = type
    }
    this.#lineType = type
    this.#lineBytes = 1
    this.#count = 0
    this.#digits = 0
    this.#isNegative = false
    this.#isStreamed = false
    this.#sawReturn = false
    const lineEnd =
      isCounted[type] === 1 ? this.#digitsOfWholeLine(bytes, at, end) : this.#endOfWholeLine(bytes, at, end)
    if (lineEnd < 0) return this.#restOfLine(bytes, at + 1, end)
    this.#endLine()
    return lineEnd
  }

  // Nearly every line is complete and plain digits or text: these two read it with local variables only. -1: read byte
  // by byte.
  #digitsOfWholeLine(bytes: Uint8Array, at: number, end: number): number {
    let index = at + 1
    let count = 0
    for (; index < end; index++) {
      const digit = bytes[index]! - 0x30
      if (digit < 0 || digit > 9) break
      count = count * 10 + digit
    }
    const digits = index - at - 1
    if (digits === 0 || digits > 15 || index + 1 >= end) return -1
    if (bytes[index] !== carriageReturn || bytes[index + 1] !== lineFeed) return -1
    this.#count = count
    this.#digits = digits
    return index + 2
  }

  #endOfWholeLine(bytes: Uint8Array, at: number, end: number): number {
    const last = Math.min(end - 1, at + this.#limits.maxLineBytes)
    for (let index = at + 1; index < last; index++) {
      if (bytes[index] === lineFeed) return -1
      if (bytes[index] === carriageReturn) return bytes[index + 1] === lineFeed ? index + 2 : -1
    }
    return -1
  }

  #restOfLine(bytes: Uint8Array, from: number, end: number): number {
    let at = from
    const counts = isCounted[this.#lineType] === 1
    for (; at < end; at++) {
      const byte = bytes[at]!
      if (++this.#lineBytes > this.#limits.maxLineBytes + 1) {
        throw new RespError('FB_RESP_TOO_LARGE', `a line is longer than maxLineBytes, ${this.#limits.maxLineBytes}`)
      }
      if (this.#sawReturn) {
        if (byte !== lineFeed)
          throw new RespError('FB_RESP_PROTOCOL', 'a carriage return is not followed by a line feed')
        this.#endLine()
        return at + 1
      }
      if (byte === carriageReturn) this.#sawReturn = true
      else if (counts) this.#countByte(byte)
      else if (byte === lineFeed)
        throw new RespError('FB_RESP_PROTOCOL', 'a line feed is not preceded by a carriage return')
    }
    return at
  }

  #countByte(byte: number): void {
    const digit = byte - 0x30
    const isFirst = this.#digits === 0 && !this.#isNegative && !this.#isStreamed
    if (digit >= 0 && digit <= 9 && !this.#isStreamed) {
      this.#count = this.#count * 10 + digit
      this.#digits++
    } else if (byte === 0x2d && isFirst) this.#isNegative = true
    else if (byte === marker.streamed && isFirst) this.#isStreamed = true
    else throw new RespError('FB_RESP_PROTOCOL', `byte ${byte} is not allowed in a length`)
    if (this.#digits > 15) throw new RespError('FB_RESP_TOO_LARGE', 'a length has more than 15 digits')
  }

  #endLine(): void {
    const type = this.#lineType
    this.#lineType = 0
    if (isPlain[type] === 1) this.#finishElement()
    else if (type === marker.streamEnd) this.#endStreamed()
    else if (this.#digits === 0 && !this.#isStreamed) throw new RespError('FB_RESP_PROTOCOL', 'a length is missing')
    else if (this.#isNegative) this.#endNull(type)
    else if (type === marker.array || type === marker.set || type === marker.push) this.#open(this.#count, 1)
    else if (type === marker.map) this.#open(this.#count * 2, 1)
    else if (type === marker.attribute) this.#open(this.#count * 2, 0)
    else this.#openBulk(type)
  }

  #endNull(type: number): void {
    if (this.#count !== 1 || (type !== marker.bulk && type !== marker.array)) {
      throw new RespError('FB_RESP_PROTOCOL', 'a length is negative')
    }
    this.#finishElement()
  }

  #openBulk(type: number): void {
    if (this.#isStreamed) {
      if (type !== marker.bulk) throw new RespError('FB_RESP_PROTOCOL', 'only a bulk string can be streamed')
      this.#isInStreamedString = true
    } else if (type === marker.streamPart && this.#count === 0) {
      this.#isInStreamedString = false
      this.#finishElement()
    } else {
      if (this.#count > this.#limits.maxBulkBytes) {
        const { maxBulkBytes } = this.#limits
        throw new RespError(
          'FB_RESP_TOO_LARGE',
          `a bulk string of ${this.#count} bytes is above maxBulkBytes, ${maxBulkBytes}`,
        )
      }
      this.#missing = this.#count + 2
    }
  }

  /**
   * Begins an aggregate of `elements`; the aggregate itself counts as `self` elements of what encloses it (an attribute
   * as none).
   */
  #open(elements: number, self: number): void {
    const { maxElements, maxDepth } = this.#limits
    if (elements > maxElements) {
      throw new RespError(
        'FB_RESP_TOO_LARGE',
        `an aggregate of ${elements} elements is above maxElements, ${maxElements}`,
      )
    }
    this.#remaining -= self
    if (this.#isStreamed || this.#remaining === Number.POSITIVE_INFINITY) {
      if (this.#outer.length >= maxDepth) {
        throw new RespError('FB_RESP_TOO_DEEP', `aggregates are nested deeper than maxDepth, ${maxDepth}`)
      }
      this.#outer.push(this.#remaining)
      this.#remaining = this.#isStreamed ? Number.POSITIVE_INFINITY : elements
    } else this.#remaining += elements
    this.#settle()
  }

  #endStreamed(): void {
    if (this.#remaining !== Number.POSITIVE_INFINITY) {
      throw new RespError('FB_RESP_PROTOCOL', 'end of a streamed aggregate, but none is open')
    }
    this.#remaining = this.#outer.pop()!
    this.#settle()
  }

  #finishElement(): void {
    this.#remaining--
    this.#settle()
  }

  /** Returns to what encloses a complete aggregate; if nothing does, the reply is done. */
  #settle(): void {
    while (this.#remaining === 0) {
      const outer = this.#outer.pop()
      if (outer === undefined) {
        this.#isDone = true
        return
      }
      this.#remaining = outer
    }
  }
}
