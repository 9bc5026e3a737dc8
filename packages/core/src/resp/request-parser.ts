import { splitInline } from './inline-request.ts'
import { checkedBound } from './limits.ts'
import { carriageReturn, lineFeed, marker } from './markers.ts'
import { RequestError } from './resp-error.ts'
import { strictWholeNumberOf } from './resp-number.ts'

const mostArguments = 2 ** 31 - 1

/** Bounds of a `RequestParser`; Redis' own by default. */
export interface RequestParserOptions {
  /** Bytes of one argument, like Redis' `proto-max-bulk-len`. @default 536870912 */
  readonly maxBulkBytes?: number
  /** Arguments of one request; memory is allocated as they arrive. @default 2147483647 */
  readonly maxArguments?: number
  /** Bytes of an inline request, or of a line with a count. @default 65536 */
  readonly maxInlineBytes?: number
}

/**
 * Reads clients' requests, multibulk and inline, as offsets into the buffer they arrived in: no strings, no copies.
 *
 * `parse(buffer, start, end)` returns the offset after the request that begins at `start`, or 0 if it is incomplete;
 * then call it again with more data. An incomplete request is not re-read from its start: the offsets found so far are
 * kept, relative to `start`, so the caller may move the bytes (to the front of the buffer, into a larger one) between
 * two calls, as long as `start` points to the first byte of the same request.
 *
 * After a complete request, argument i is `bytes` from `startOf(i)` to `endOf(i)`, until the next call. `bytes` is the
 * buffer itself, except for an inline request with quotes, whose arguments are written elsewhere. A request may be
 * empty (`length` 0): Redis does not answer a blank line or an empty array. What Redis refuses is refused with the same
 * sentence, in a `RequestError`; what it accepts (it ignores the line ends after bulk strings) is accepted.
 */
export class RequestParser {
  readonly #maxBulkBytes: number
  readonly #maxArguments: number
  readonly #maxInlineBytes: number
  /** Of a request with more arguments only the head is read; it then counts as incomplete. */
  headOnlyAbove: number = mostArguments
  /** Start and end of each argument, relative to the request's start until the request is complete. */
  #offsets = new Int32Array(32)
  #length = 0
  #base = 0
  #bytes: Uint8Array = new Uint8Array(0)
  /** Number of arguments in the multibulk header; -1 before it has been read. */
  #expected = -1
  /** How far the request has been read, relative to its start. */
  #read = 0
  #missing = 0
  #number = 0
  /** How far an unfinished line with a count has been searched for its end, relative to the start of the request. */
  #looked = 0

  constructor(options: RequestParserOptions = {}) {
    this.#maxBulkBytes = checkedBound('maxBulkBytes', options.maxBulkBytes ?? 512 * 1024 * 1024)
    this.#maxArguments = checkedBound('maxArguments', options.maxArguments ?? mostArguments)
    this.#maxInlineBytes = checkedBound('maxInlineBytes', options.maxInlineBytes ?? 64 * 1024)
  }

  /** Number of arguments in the request, including the command's name. */
  get length(): number {
    return this.#length
  }

  /** The bytes that the arguments' offsets point into. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** After an incomplete `parse`: the number of arguments that the request will have, or -1 if unknown. */
  get expectedLength(): number {
    return this.#expected
  }

  /** After an incomplete `parse`: bytes of the current argument that are certain to follow, otherwise 0. */
  get missingBytes(): number {
    return this.#missing
  }

  /** After an incomplete `parse`: the offset after the last complete argument. */
  get readEnd(): number {
    return this.#base + this.#read
  }

  startOf(index: number): number {
    return this.#base + this.#offsets[index * 2]!
  }

  endOf(index: number): number {
    return this.#base + this.#offsets[index * 2 + 1]!
  }

  /** The offset after the request at `start`, or 0 if it is incomplete. */
  parse(buffer: Uint8Array, start: number, end: number): number {
    this.#bytes = buffer
    this.#base = start
    this.#missing = 0
    if (this.#read === 0) this.#length = 0
    if (start >= end) return 0
    const requestEnd = buffer[start] === marker.array ? this.#multibulk(buffer, end) : this.#inline(buffer, start, end)
    if (requestEnd !== 0) {
      this.#looked = 0
      this.#expected = -1
      this.#read = 0
    }
    return requestEnd
  }

  /** Discards an incomplete request. */
  reset(): void {
    this.#looked = 0
    this.#expected = -1
    this.#read = 0
    this.#length = 0
    this.#missing = 0
  }

  #multibulk(buffer: Uint8Array, end: number): number {
    const base = this.#base
    if (this.#expected < 0) {
      const stop = this.#lineEnd(buffer, base, end, 'mbulk count')
      if (stop < 0) return 0
      const count = this.#number
      if (!(count <= this.#maxArguments)) throw new RequestError('invalid multibulk length')
      if (count <= 0) return stop + 2
      this.#expected = count
      this.#read = stop + 2 - base
    }
    if (this.#expected > this.headOnlyAbove) return 0
    while (this.#length < this.#expected) {
      const at = base + this.#read
      if (at >= end) return 0
      const stop = this.#lineEnd(buffer, at, end, 'bulk count')
      if (stop < 0) return 0
      if (buffer[at] !== marker.bulk) {
        if (buffer[at] === 0) return this.#endless(at, end, 'bulk count')
        throw new RequestError(`expected '$', got ${shown(buffer[at]!)}`)
      }
      const length = this.#number
      if (!(length >= 0 && length <= this.#maxBulkBytes)) throw new RequestError('invalid bulk length')
      const from = stop + 2
      if (from + length - base > maxOffset) throw new RequestError('too big request')
      if (from + length + 2 > end) {
        this.#missing = from + length + 2 - end
        return 0
      }
      this.#add(from - base, from + length - base)
      this.#read = from + length + 2 - base
    }
    return base + this.#read
  }

  /**
   * The offset of the carriage return that ends the line at `start`, or -1 if it and its line feed have not arrived.
   * `#number` is then the number after the line's first byte.
   */
  #lineEnd(buffer: Uint8Array, start: number, end: number, what: 'mbulk count' | 'bulk count'): number {
    let stop = start + 1
    // Nearly every number is one to six plain digits without a leading zero.
    const first = buffer[stop]!
    if (first > 0x30 && first <= 0x39 && end - stop > 8) {
      let number = first - 0x30
      let digit = buffer[++stop]! - 0x30
      for (let count = 1; digit >= 0 && digit <= 9 && count < 6; count++) {
        number = number * 10 + digit
        digit = buffer[++stop]! - 0x30
      }
      if (buffer[stop] === carriageReturn) {
        this.#looked = 0
        this.#number = number
        return stop
      }
    }
    if (buffer[start] === carriageReturn) stop = start
    // Does not search the same bytes twice: a line that arrives byte by byte would cost its length squared.
    stop = Math.max(stop, this.#base + this.#looked)
    while (stop < end && buffer[stop] !== carriageReturn && buffer[stop] !== 0) stop++
    if (stop === end || buffer[stop] === 0) {
      this.#looked = stop - this.#base
      this.#endless(start, end, what)
      return -1
    }
    if (stop + 1 >= end) return -1
    this.#looked = 0
    this.#number = strictWholeNumberOf(buffer, start + 1, stop)
    return stop
  }

  /** A line that never ends; Redis searches a C string, so it finds no line end after a NUL. */
  #endless(start: number, end: number, what: 'mbulk count' | 'bulk count'): 0 {
    if (end - start > this.#maxInlineBytes) throw new RequestError(`too big ${what} string`)
    return 0
  }

  #inline(buffer: Uint8Array, start: number, end: number): number {
    let stop = start + this.#read
    while (stop < end && buffer[stop] !== lineFeed && buffer[stop] !== 0) stop++
    if (stop === end || buffer[stop] === 0) {
      if (end - start > this.#maxInlineBytes) throw new RequestError('too big inline request')
      this.#read = stop - start
      return 0
    }
    const lineEnd = stop > start && buffer[stop - 1] === carriageReturn ? stop - 1 : stop
    this.#length = 0
    const own: Uint8Array[] = []
    splitInline(buffer, start, lineEnd, {
      addRange: (from, to) => {
        own.push(buffer.subarray(from, to))
        this.#add(from - start, to - start)
      },
      addBytes: (bytes) => {
        own.push(bytes)
        this.#add(-1, -1)
      },
    })
    if (this.#hasWrittenOut()) this.#writeOut(own)
    return stop + 1
  }

  #hasWrittenOut(): boolean {
    for (let index = 0; index < this.#length; index++) if (this.#offsets[index * 2]! < 0) return true
    return false
  }

  /** Writes the arguments of a line with quotes one after another into separate memory. */
  #writeOut(args: readonly Uint8Array[]): void {
    const total = args.reduce((sum, { length }) => sum + length, 0)
    this.#bytes = new Uint8Array(total)
    this.#base = 0
    this.#length = 0
    let at = 0
    for (const arg of args) {
      this.#bytes.set(arg, at)
      this.#add(at, at + arg.length)
      at += arg.length
    }
  }

  #add(start: number, end: number): void {
    const index = this.#length * 2
    if (index === this.#offsets.length) {
      const larger = new Int32Array(index * 2)
      larger.set(this.#offsets)
      this.#offsets = larger
    }
    this.#offsets[index] = start
    this.#offsets[index + 1] = end
    this.#length++
  }
}

/**
 * The furthest end of a request's last argument; Redis disconnects a client long before that
 * (`client-query-buffer-limit`).
 */
const maxOffset = 2 ** 31 - 3

/** A byte as Redis shows it in an error, which is one line. */
function shown(byte: number): string {
  return `'${byte === carriageReturn || byte === lineFeed ? ' ' : String.fromCharCode(byte)}'`
}
