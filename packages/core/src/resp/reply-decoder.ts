import { ByteWriter } from './byte-writer.ts'
import { type ResolvedRespLimits, type RespLimits, resolveLimits } from './limits.ts'
import { carriageReturn, lineFeed, marker } from './markers.ts'
import { OpenAggregates } from './open-aggregates.ts'
import { RespError } from './resp-error.ts'
import { bigIntegerOf, doubleOf, integerOf, wholeNumberOf } from './resp-number.ts'
import { joinBytes, rawBytes, textOf } from './text.ts'
import { BigNumber, Double, ErrorReply, type RespValue, Verbatim } from './value.ts'

/** How a `ReplyDecoder` returns what it reads. */
export interface ReplyDecoderOptions extends RespLimits {
  /**
   * How bulk strings are returned. `view`: a `Uint8Array` on the memory of its chunk (copied only if it arrived in
   * several). The view is valid as long as nobody writes to the chunk (Node's sockets never do), and it keeps the whole
   * chunk alive: copy what you keep for long. `copy`: bytes of its own. `text`: a string.
   * @default 'view'
   */
  readonly bulk?: 'view' | 'copy' | 'text'
  /** Whether attributes before a value are dropped or wrap it in an `Attributed`. @default 'drop' */
  readonly attributes?: 'drop' | 'keep'
}

const noBytes = new Uint8Array(0)
// Up to this size, memory for a bulk string in pieces is allocated at once; beyond, it grows with what actually
// arrives.
const trustedBytes = 64 * 1024

/**
 * Decodes a server's replies, RESP2 and RESP3, from chunks that may end at any byte.
 *
 * `feed` takes a chunk; `next` returns one reply after another, and `undefined` when the rest has not arrived yet.
 * Out-of-band replies are `PushReply`; everything else answers a request.
 *
 * Nothing is read twice. The state of an incomplete reply is (1) a stack of open aggregates and their items so far, not
 * a call stack, so that a reply of a million items resumes where the last chunk ended and the depth limit is ours and
 * not the machine's; (2) the bytes of one unfinished line; (3) the bytes of one unfinished bulk string.
 */
export class ReplyDecoder {
  readonly #limits: ResolvedRespLimits
  readonly #bulk: 'view' | 'copy' | 'text'
  readonly #open: OpenAggregates
  #chunk: Uint8Array = noBytes
  #at = 0
  #end = 0
  #waiting: Uint8Array[] = []
  /** The start of a line that has not ended yet. */
  #carry: Uint8Array | undefined
  /** The marker of the bulk string being collected, or 0. */
  #partialType = 0
  #partialLength = 0
  #partialSoFar = 0
  #partial: Uint8Array = noBytes
  #scratch: Uint8Array = noBytes
  /** The parts of a streamed string. */
  #streamed: ByteWriter | undefined
  #failure: RespError | undefined

  constructor(options: ReplyDecoderOptions = {}) {
    this.#limits = resolveLimits(options)
    this.#bulk = options.bulk ?? 'view'
    this.#open = new OpenAggregates(this.#limits, options.attributes === 'keep')
  }

  /** True when no reply is incomplete and nothing is left to read: the connection may end here. */
  get isIdle(): boolean {
    return (
      this.#at >= this.#end &&
      this.#waiting.length === 0 &&
      this.#open.isEmpty &&
      this.#carry === undefined &&
      this.#partialType === 0 &&
      this.#streamed === undefined
    )
  }

  /** Takes the next bytes of the connection; call `next` until it returns undefined. */
  feed(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (this.#at < this.#end) {
      this.#waiting.push(chunk)
      return
    }
    this.#chunk = chunk
    this.#at = 0
    this.#end = chunk.length
  }

  /**
   * The next complete reply or push, or undefined until more bytes are fed. Throws a `RespError`, and keeps throwing
   * it.
   */
  next(): RespValue | undefined {
    if (this.#failure !== undefined) throw this.#failure
    try {
      while (this.#at < this.#end || this.#takeWaiting()) {
        const value = this.#partialType === 0 ? this.#readElement() : this.#gather()
        if (value === undefined) continue
        const whole = this.#open.place(value)
        if (whole !== undefined) return whole
      }
      // An idle connection should not keep its last chunk.
      this.#chunk = noBytes
      this.#at = this.#end = 0
      return undefined
    } catch (error) {
      if (error instanceof RespError) this.#failure = error
      throw error
    }
  }

  #takeWaiting(): boolean {
    const chunk = this.#waiting.shift()
    if (chunk === undefined) return false
    this.#chunk = chunk
    this.#at = 0
    this.#end = chunk.length
    return true
  }

  /**
   * Reads one line and what belongs to it; undefined if that does not complete a value. Most lines are an integer, or
   * the header of a bulk string or array, complete and plain digits: these are read here in one go, all others by
   * `#readAnyLine`.
   */
  #readElement(): RespValue | undefined {
    const chunk = this.#chunk
    const end = this.#end
    let at = this.#at
    const type = chunk[at]!
    const isCommon = type === marker.bulk || type === marker.array || type === marker.integer
    if (!isCommon || this.#carry !== undefined || this.#streamed !== undefined) return this.#readAnyLine()
    const isNegative = chunk[++at] === 0x2d
    if (isNegative) at++
    const from = at
    let count = 0
    for (; at < end; at++) {
      const digit = chunk[at]! - 0x30
      if (digit < 0 || digit > 9) break
      count = count * 10 + digit
    }
    const isPlain = at > from && at <= from + 15 && at + 1 < end
    if (!isPlain || chunk[at] !== carriageReturn || chunk[at + 1] !== lineFeed) return this.#readAnyLine()
    if (isNegative && type !== marker.integer) {
      // A length below 0 can only be the -1 of a null.
      if (count !== 1) return this.#readAnyLine()
      this.#at = at + 2
      return null
    }
    this.#at = at + 2
    if (type === marker.bulk) return this.#startBulk(type, count)
    if (type === marker.array) return this.#open.open(type, count)
    return isNegative && count !== 0 ? -count : count
  }

  #readAnyLine(): RespValue | undefined {
    const chunk = this.#chunk
    const start = this.#at
    let stop = start
    while (stop < this.#end && chunk[stop] !== lineFeed) stop++
    if (stop - start + (this.#carry?.length ?? 0) > this.#limits.maxLineBytes) {
      throw new RespError('FB_RESP_TOO_LARGE', `a line is longer than maxLineBytes, ${this.#limits.maxLineBytes}`)
    }
    if (stop === this.#end) {
      this.#carry = joinBytes([this.#carry ?? noBytes, chunk.subarray(start, stop)])
      this.#at = stop
      return undefined
    }
    this.#at = stop + 1
    if (this.#carry === undefined) return this.#readLine(chunk, start, stop)
    const line = joinBytes([this.#carry, chunk.subarray(start, stop)])
    this.#carry = undefined
    return this.#readLine(line, 0, line.length)
  }

  /** The value of the line from `start` to its line feed at `lineEnd`. */
  #readLine(line: Uint8Array, start: number, lineEnd: number): RespValue | undefined {
    const type = line[start]!
    const from = start + 1
    const to = lineEnd - 1
    if (to < from || line[to] !== carriageReturn) throw badLine(line, start, lineEnd)
    if (this.#streamed !== undefined && type !== marker.streamPart) throw badLine(line, start, lineEnd)
    switch (type) {
      case marker.bulk:
      case marker.verbatim:
      case marker.blobError:
        return this.#readBulk(type, line, from, to)
      case marker.array:
      case marker.set:
      case marker.map:
      case marker.push:
      case marker.attribute:
        return this.#readAggregate(type, line, from, to)
      case marker.simple:
        return textOf(line, from, to)
      case marker.error:
        return new ErrorReply(textOf(line, from, to))
      case marker.integer: {
        const value = integerOf(line, from, to)
        if (!Number.isNaN(value)) return value
        break
      }
      case marker.null:
        if (to === from) return null
        break
      case marker.boolean:
        if (to === from + 1 && (line[from] === 0x74 || line[from] === 0x66)) return line[from] === 0x74
        break
      case marker.double: {
        const value = doubleOf(line, from, to)
        if (value !== undefined) return new Double(value)
        break
      }
      case marker.bigNumber: {
        const value = bigIntegerOf(line, from, to)
        if (value !== undefined) return new BigNumber(value)
        break
      }
      case marker.streamPart:
        if (this.#streamed !== undefined) return this.#readBulk(type, line, from, to)
        break
      case marker.streamEnd:
        if (to === from) return this.#open.closeStreamed()
        break
    }
    throw badLine(line, start, lineEnd)
  }

  #readBulk(type: number, line: Uint8Array, from: number, to: number): RespValue | undefined {
    if (type === marker.bulk && to === from + 1 && line[from] === marker.streamed) {
      this.#streamed = new ByteWriter()
      return undefined
    }
    const length = wholeNumberOf(line, from, to)
    if (length === -1 && type === marker.bulk) return null
    if (!(length >= 0)) throw badLine(line, from - 1, to + 1)
    return this.#startBulk(type, length)
  }

  /** Reads as much of a bulk string, whose header has been read, as has arrived. */
  #startBulk(type: number, length: number): RespValue | undefined {
    if (length + (this.#streamed?.length ?? 0) > this.#limits.maxBulkBytes) {
      const { maxBulkBytes } = this.#limits
      throw new RespError(
        'FB_RESP_TOO_LARGE',
        `a bulk string of ${length} bytes is above maxBulkBytes, ${maxBulkBytes}`,
      )
    }
    if (type === marker.streamPart && length === 0) {
      const bytes = this.#streamed!.take()
      this.#streamed = undefined
      return this.#bulkValue(marker.bulk, bytes, 0, bytes.length, true)
    }
    const start = this.#at
    const end = start + length
    if (end + 2 <= this.#end) {
      checkBulkEnd(this.#chunk, end)
      this.#at = end + 2
      return this.#bulkValue(type, this.#chunk, start, end, false)
    }
    this.#partialType = type
    this.#partialLength = length
    this.#partialSoFar = 0
    this.#partial = this.#memoryFor(type, Math.min(length + 2, trustedBytes))
    return undefined
  }

  // Bytes that will only become text are collected in the same memory each time; all others are handed out.
  #memoryFor(type: number, length: number): Uint8Array {
    if (this.#bulk !== 'text' || type !== marker.bulk) return rawBytes(length)
    if (this.#scratch.length < length) this.#scratch = rawBytes(length)
    return this.#scratch
  }

  /** Takes the chunk's share of a bulk string that spans several. */
  #gather(): RespValue | undefined {
    const needed = this.#partialLength + 2
    const taken = Math.min(this.#end - this.#at, needed - this.#partialSoFar)
    const soFar = this.#partialSoFar + taken
    if (soFar > this.#partial.length) {
      const larger = rawBytes(Math.min(needed, Math.max(soFar, this.#partial.length * 2)))
      larger.set(this.#partial.subarray(0, this.#partialSoFar))
      this.#partial = larger
    }
    this.#partial.set(this.#chunk.subarray(this.#at, this.#at + taken), this.#partialSoFar)
    this.#partialSoFar = soFar
    this.#at += taken
    if (soFar < needed) return undefined
    const type = this.#partialType
    const bytes = this.#partial
    this.#partialType = 0
    this.#partial = noBytes
    checkBulkEnd(bytes, this.#partialLength)
    return this.#bulkValue(type, bytes, 0, this.#partialLength, true)
  }

  #bulkValue(type: number, bytes: Uint8Array, start: number, end: number, isOwn: boolean): RespValue | undefined {
    if (type === marker.bulk) {
      return this.#bulk === 'text' ? textOf(bytes, start, end) : this.#bytesOf(bytes, start, end, isOwn)
    }
    if (type === marker.blobError) return new ErrorReply(textOf(bytes, start, end))
    if (type === marker.streamPart) {
      this.#streamed!.bytes(bytes.subarray(start, end))
      return undefined
    }
    if (end - start < 4 || bytes[start + 3] !== 0x3a) {
      throw new RespError('FB_RESP_PROTOCOL', 'a verbatim string does not begin with a format of three letters')
    }
    return new Verbatim(textOf(bytes, start, start + 3), this.#bytesOf(bytes, start + 4, end, isOwn))
  }

  #bytesOf(bytes: Uint8Array, start: number, end: number, isOwn: boolean): Uint8Array {
    if (isOwn || this.#bulk === 'view') return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start)
    return Uint8Array.prototype.slice.call(bytes, start, end)
  }

  #readAggregate(type: number, line: Uint8Array, from: number, to: number): RespValue | undefined {
    const isStreamed = to === from + 1 && line[from] === marker.streamed
    const count = isStreamed ? Number.POSITIVE_INFINITY : wholeNumberOf(line, from, to)
    if (count === -1 && type === marker.array) return null
    if (!(count >= 0)) throw badLine(line, from - 1, to + 1)
    return this.#open.open(type, count)
  }
}

function checkBulkEnd(bytes: Uint8Array, end: number): void {
  if (bytes[end] !== carriageReturn || bytes[end + 1] !== lineFeed) {
    throw new RespError('FB_RESP_PROTOCOL', 'a bulk string is not followed by a line end')
  }
}

// The line itself may contain a value: only its type and length are reported.
function badLine(line: Uint8Array, start: number, lineEnd: number): RespError {
  const type = line[start]!
  const shown = type > 0x20 && type < 0x7f ? `"${String.fromCharCode(type)}"` : `byte ${type}`
  const length = lineEnd - start
  return new RespError('FB_RESP_PROTOCOL', `a line of ${length} bytes that begins with ${shown} is not RESP`)
}
