import { decompressLzf, lzfPrefix } from './lzf.ts'
import { allocated, stringMemory, stringValueMemory, type ValueTally } from './memory-model.ts'
import { type Container, headerBytes, headerCount, walkCount, walkListpack } from './packed.ts'
import type { RdbInput } from './rdb-input.ts'
import type { Step } from './value-shapes.ts'

/** More than any step looks at: the head of a string (19 bytes) and what is wanted of its content. */
const lookAhead = 64
const deepest = 8

/**
 * Runs the steps of one value over the input. A stack of loops (how deep shapes nest: 4) is all the state there is, so
 * that reading can stop before any step and go on when more bytes have come.
 */
export class ValueReader {
  readonly tally: ValueTally = {
    elements: 0,
    stringBytes: 0,
    plainBytes: 0,
    blobBytes: 0,
    blobs: 0,
    lastBlobBytes: 0,
    largestBytes: 0,
    groups: 0,
    consumers: 0,
    pending: 0,
  }
  fieldsWithTtl = 0
  /** Of a plain string value: its encoding and memory. */
  stringEncoding: string | undefined
  stringBytes: number | undefined
  /** Of the string whose head was read last. */
  headKind: 'plain' | 'integer' | 'compressed' = 'plain'
  /** Its length as the server has it, and how many bytes follow in the dump. */
  headLength = 0
  headStored = 0
  headInteger = 0
  readonly #input: RdbInput
  readonly #maxBlobBytes: number
  readonly #note: (text: string) => void
  readonly #noted = new Set<string>()
  readonly #steps: (readonly Step[])[] = new Array(deepest).fill([])
  readonly #index = new Int32Array(deepest)
  readonly #left = new Float64Array(deepest)
  #depth = -1

  constructor(input: RdbInput, maxBlobBytes: number, note: (text: string) => void) {
    this.#input = input
    this.#maxBlobBytes = maxBlobBytes
    this.#note = note
  }

  begin(steps: readonly Step[]): void {
    const { tally } = this
    tally.elements = 0
    tally.stringBytes = 0
    tally.plainBytes = 0
    tally.blobBytes = 0
    tally.blobs = 0
    tally.lastBlobBytes = 0
    tally.largestBytes = 0
    tally.groups = 0
    tally.consumers = 0
    tally.pending = 0
    this.fieldsWithTtl = 0
    this.stringEncoding = undefined
    this.stringBytes = undefined
    this.#depth = 0
    this.#steps[0] = steps
    this.#index[0] = 0
    this.#left[0] = 1
  }

  /** Runs until the value ends (true) or more bytes are needed (false). */
  run(): boolean {
    const input = this.#input
    while (this.#depth >= 0) {
      const depth = this.#depth
      const steps = this.#steps[depth]!
      const index = this.#index[depth]!
      if (index === steps.length) {
        if (--this.#left[depth]! > 0) this.#index[depth] = 0
        else this.#depth--
        continue
      }
      if (!input.has(lookAhead)) return false
      const start = input.position
      if (!this.#run(steps[index]!)) {
        input.position = start
        return false
      }
    }
    return true
  }

  /** Runs one step; false where it needs more bytes than `lookAhead`. */
  #run(step: Step): boolean {
    const input = this.#input
    const depth = this.#depth
    switch (step.op) {
      case 'string':
        this.readHead()
        input.skip(this.headStored)
        this.#addString(this.headLength)
        break
      case 'name':
        this.readHead()
        input.skip(this.headStored)
        break
      case 'value':
        this.#stringValue()
        break
      case 'number':
        this.number()
        break
      case 'elements':
        this.tally.elements = this.length()
        break
      case 'fieldTtl':
        if (this.number() !== 0) this.fieldsWithTtl++
        break
      case 'fieldTtl64':
        input.need(8)
        if (input.bytes.readInt32LE(input.position + 4) >= 0) this.fieldsWithTtl++
        input.position += 8
        break
      case 'skip':
        input.skip(step.bytes)
        break
      case 'score': {
        const length = input.byte()
        // 253 to 255 stand for not-a-number and the infinities.
        if (length < 253) input.skip(length)
        break
      }
      case 'times': {
        const count = this.length()
        if (step.counts !== undefined) this.tally[step.counts] += count
        this.#index[depth]!++
        if (count > 0) this.#enter(step.body, count)
        return true
      }
      case 'blob':
        if (!this.#blob(step.container, step.perElement, step.hasFieldTtls ?? false)) return false
        break
      case 'listNode':
        if (!this.#listNode()) return false
        break
      case 'moduleId':
        this.#moduleId()
        break
      case 'moduleValues':
        if (!this.#moduleValue()) return true
        break
    }
    this.#index[depth]!++
    return true
  }

  #enter(body: readonly Step[], count: number): void {
    const { totalBytes, offset } = this.#input
    if (totalBytes !== undefined && count > totalBytes - offset) {
      this.#input.fail(`${count} items are announced, but only ${totalBytes - offset} bytes follow`)
    }
    const depth = ++this.#depth
    this.#steps[depth] = body
    this.#index[depth] = 0
    this.#left[depth] = count
  }

  #addString(length: number): void {
    const { tally } = this
    tally.stringBytes += stringMemory(length)
    tally.plainBytes += length
    if (length > tally.largestBytes) tally.largestBytes = length
  }

  #stringValue(): void {
    const input = this.#input
    this.readHead()
    const length = this.headLength
    const isInteger =
      this.headKind === 'integer' || (this.headKind === 'plain' && length <= 20 && this.#isIntegerText(length))
    this.tally.elements = 1
    this.tally.largestBytes = length
    this.stringBytes = stringValueMemory(length, isInteger)
    this.stringEncoding = isInteger ? 'int' : length <= 44 ? 'embstr' : 'raw'
    input.skip(this.headStored)
  }

  /** Integers beyond 32 bits are written as text; a server keeps them as integers again. */
  #isIntegerText(length: number): boolean {
    const input = this.#input
    input.need(length)
    const from = input.position
    const isNegative = input.bytes[from] === 0x2d
    const first = input.bytes[from + (isNegative ? 1 : 0)]!
    const digits = length - (isNegative ? 1 : 0)
    if (digits < 1 || digits > 19 || first < 0x30 || first > 0x39 || (first === 0x30 && length > 1)) return false
    for (let at = from + 1; at < from + length; at++) {
      if (input.bytes[at]! < 0x30 || input.bytes[at]! > 0x39) return false
    }
    if (digits < 19) return true
    const value = BigInt(input.bytes.toString('latin1', from, from + length))
    return value === BigInt.asIntN(64, value)
  }

  #listNode(): boolean {
    const container = this.length()
    if (container === 1) {
      this.readHead()
      this.#input.skip(this.headStored)
      this.#addBlob(this.headLength)
      this.tally.elements++
      this.tally.largestBytes = Math.max(this.tally.largestBytes, this.headLength)
      return true
    }
    if (container !== 2) this.#input.fail(`a list node of kind ${container} is not known`)
    return this.#blob('listpack', 1, false)
  }

  #addBlob(length: number): void {
    const { tally } = this
    tally.blobs++
    tally.lastBlobBytes = allocated(length)
    tally.blobBytes += tally.lastBlobBytes
  }

  #blob(container: Container, perElement: number, hasFieldTtls: boolean): boolean {
    const input = this.#input
    const at = input.offset
    this.readHead()
    const { headKind: kind, headLength: length, headStored: stored } = this
    const wanted = headerBytes[container]
    if (kind === 'integer' || length < wanted) input.fail(`a ${container} of ${length} bytes is too short`, at)
    const head = this.#content(Math.min(length, wanted))
    if (head === undefined) return input.fail(`a compressed ${container} does not unpack`, at)
    let entries = perElement === 0 ? 0 : headerCount(container, head)
    if (entries === undefined || hasFieldTtls) {
      if (length > this.#maxBlobBytes || stored > this.#maxBlobBytes) {
        this.#noteOnce(`a ${container} of ${length} bytes was not walked: its elements are counted as 65,535 entries`)
        entries ??= 65535
      } else {
        if (!input.has(stored)) return false
        input.need(stored)
        const whole = this.#content(length)
        entries = whole === undefined ? undefined : this.#walk(container, whole, hasFieldTtls)
        if (entries === undefined) return input.fail(`a ${container} is damaged`, at)
      }
    }
    input.skip(stored)
    this.#addBlob(length)
    if (perElement > 0) this.tally.elements += Math.floor(entries / perElement)
    return true
  }

  #walk(container: Container, bytes: Uint8Array, hasFieldTtls: boolean): number | undefined {
    if (!hasFieldTtls) return walkCount(container, bytes)
    let fieldsWithTtl = 0
    const entries = walkListpack(bytes, (index, isZero) => {
      if (index % 3 === 2 && !isZero) fieldsWithTtl++
    })
    this.fieldsWithTtl += fieldsWithTtl
    return entries
  }

  /** The first `wanted` bytes of the string whose head was just read; the position stays. */
  #content(wanted: number): Uint8Array | undefined {
    const input = this.#input
    const from = input.position
    if (this.headKind === 'plain') {
      input.need(wanted)
      return input.bytes.subarray(from, from + wanted)
    }
    const stored = Math.min(this.headStored, lzfPrefix(wanted))
    input.need(stored)
    return decompressLzf(input.bytes, from, from + stored, wanted)
  }

  #moduleId(): void {
    const input = this.#input
    if (input.byte() !== 0x81) input.fail('a module type has no name', input.offset - 1)
    input.need(8)
    const id = input.bytes.readBigUInt64BE(input.position)
    input.position += 8
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    let text = ''
    for (let shift = 58n; shift >= 10n; shift -= 6n) text += letters[Number((id >> shift) & 63n)]
    this.#noteOnce(`values of the module type ${text} were passed over: their memory is the size of their dump`)
  }

  /** One value of a module; true at the end mark. */
  #moduleValue(): boolean {
    const input = this.#input
    const at = input.offset
    const code = this.length()
    switch (code) {
      case 0:
        return true
      case 1:
      case 2:
        this.number()
        return false
      case 3:
        input.skip(4)
        return false
      case 4:
        input.skip(8)
        return false
      case 5:
        this.readHead()
        input.skip(this.headStored)
        this.#addString(this.headLength)
        return false
      default:
        return input.fail(`a module wrote a value of kind ${code}, which is not known`, at)
    }
  }

  #noteOnce(text: string): void {
    if (this.#noted.has(text) || this.#noted.size >= 100) return
    this.#noted.add(text)
    this.#note(text)
  }

  /** A length or count. */
  length(): number {
    const at = this.#input.offset
    const value = this.#number()
    if (value < 0) this.#input.fail('a length is expected, but an encoded string stands here', at)
    if (value > Number.MAX_SAFE_INTEGER) this.#input.fail(`a length of ${value} is not possible`, at)
    return value
  }

  /** A number of up to 64 bits, as near as a double comes. */
  number(): number {
    const at = this.#input.offset
    const value = this.#number()
    if (value < 0) this.#input.fail('a number is expected, but an encoded string stands here', at)
    return value
  }

  /** A number, or −1 minus the encoding where a specially encoded string begins. */
  #number(): number {
    const input = this.#input
    const first = input.byte()
    switch (first >> 6) {
      case 0:
        return first & 63
      case 1:
        return ((first & 63) << 8) | input.byte()
      case 3:
        return -1 - (first & 63)
    }
    if (first === 0x80) {
      input.need(4)
      input.position += 4
      return input.bytes.readUInt32BE(input.position - 4)
    }
    if (first !== 0x81) input.fail(`${first} does not begin a length`, input.offset - 1)
    input.need(8)
    input.position += 8
    return input.bytes.readUInt32BE(input.position - 8) * 2 ** 32 + input.bytes.readUInt32BE(input.position - 4)
  }

  /** Reads what stands before a string's bytes. */
  readHead(): void {
    const input = this.#input
    const at = input.offset
    const value = this.#number()
    if (value >= 0) {
      if (value > Number.MAX_SAFE_INTEGER) input.fail(`a string of ${value} bytes is not possible`, at)
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
        input.fail(`${this.headStored} compressed bytes cannot hold ${this.headLength}`, at)
      }
      return
    }
    const bytes = value === -1 ? 1 : value === -2 ? 2 : value === -3 ? 4 : 0
    if (bytes === 0) input.fail(`string encoding ${-1 - value} is not known`, at)
    input.need(bytes)
    this.headKind = 'integer'
    this.headInteger = input.bytes.readIntLE(input.position, bytes)
    input.position += bytes
    this.headLength = String(this.headInteger).length
    this.headStored = 0
  }
}
