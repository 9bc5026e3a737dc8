import { decompressLzf, lzfPrefix } from './lzf.ts'
import { allocated, stringMemory, stringValueMemory, type ValueTally } from './memory-model.ts'
import { type Container, headerBytes, headerCount, walkCount, walkListpack } from './packed.ts'
import type { RdbInput } from './rdb-input.ts'
import type { Step } from './value-shapes.ts'

/** More than any step looks at: the header of a string (19 bytes) and the wanted part of its content. */
const lookAhead = 64
const deepest = 8

/**
 * Runs the steps of one value over the input. A stack of loops (shapes nest 4 deep) is the only state, so that reading
 * can stop before any step and resume when more bytes have arrived.
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
  /** For a plain string value: its encoding and memory. */
  stringEncoding: string | undefined
  stringBytes: number | undefined
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

  /** Runs one step; false if it needs more bytes than `lookAhead`. */
  #run(step: Step): boolean {
    const input = this.#input
    const depth = this.#depth
    switch (step.op) {
      case 'string':
        input.readHead()
        input.skip(input.headStored)
        this.#addString(input.headLength)
        break
      case 'name':
        input.readHead()
        input.skip(input.headStored)
        break
      case 'value':
        this.#stringValue()
        break
      case 'number':
        input.number()
        break
      case 'elements':
        this.tally.elements = input.length()
        break
      case 'fieldTtl':
        if (input.number() !== 0) this.fieldsWithTtl++
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
        const count = input.length()
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
      this.#input.fail(`${count} items should follow, but there are only ${totalBytes - offset} bytes follow`)
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
    input.readHead()
    const length = input.headLength
    const isInteger =
      input.headKind === 'integer' || (input.headKind === 'plain' && length <= 20 && this.#isIntegerText(length))
    this.tally.elements = 1
    this.tally.largestBytes = length
    this.stringBytes = stringValueMemory(length, isInteger)
    this.stringEncoding = isInteger ? 'int' : length <= 44 ? 'embstr' : 'raw'
    input.skip(input.headStored)
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
    const input = this.#input
    const container = input.length()
    if (container === 1) {
      input.readHead()
      input.skip(input.headStored)
      this.#addBlob(input.headLength)
      this.tally.elements++
      this.tally.largestBytes = Math.max(this.tally.largestBytes, input.headLength)
      return true
    }
    if (container !== 2) input.fail(`a list node of kind ${container} is unknown`)
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
    input.readHead()
    const { headKind: kind, headLength: length, headStored: stored } = input
    const wanted = headerBytes[container]
    if (kind === 'integer' || length < wanted) input.fail(`a ${container} of ${length} bytes is too short`, at)
    const head = this.#content(Math.min(length, wanted))
    if (head === undefined) return input.fail(`a compressed ${container} cannot be decompressed`, at)
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

  /** The first `wanted` bytes of the string whose header was just read; the position does not move. */
  #content(wanted: number): Uint8Array | undefined {
    const input = this.#input
    const from = input.position
    if (input.headKind === 'plain') {
      input.need(wanted)
      return input.bytes.subarray(from, from + wanted)
    }
    const stored = Math.min(input.headStored, lzfPrefix(wanted))
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
    this.#noteOnce(`values of the module type ${text} were skipped: their memory is taken to be their size in the dump`)
  }

  /** One value of a module; true at the end mark. */
  #moduleValue(): boolean {
    const input = this.#input
    const at = input.offset
    const code = input.length()
    switch (code) {
      case 0:
        return true
      case 1:
      case 2:
        input.number()
        return false
      case 3:
        input.skip(4)
        return false
      case 4:
        input.skip(8)
        return false
      case 5:
        input.readHead()
        input.skip(input.headStored)
        this.#addString(input.headLength)
        return false
      default:
        return input.fail(`a module wrote a value of kind ${code}, which is unknown`, at)
    }
  }

  #noteOnce(text: string): void {
    if (this.#noted.has(text) || this.#noted.size >= 100) return
    this.#noted.add(text)
    this.#note(text)
  }
}
