import { RdbError } from '../errors.ts'
import type { RedisType } from '../keys/found-key.ts'
import { decompressLzf } from './lzf.ts'
import { keyMemory, valueMemory } from './memory-model.ts'
import { RdbInput } from './rdb-input.ts'
import { ValueReader } from './value-reader.ts'
import {
  opcodeSteps,
  redisKeyMetadata,
  redisShapes,
  type Shape,
  type Step,
  unreadable,
  valkeyShapes,
  valkeySlotImport,
} from './value-shapes.ts'

/** One key of a dump. The object and its bytes are reused for the next key: copy what you keep. */
export interface RdbRecord {
  database: number
  /** The key's name, a view that lasts until the callback returns. */
  key: Buffer
  type: RedisType
  encoding: string
  /** Memory that key and value take in a server, estimated like MEMORY USAGE. */
  bytes: number
  elements: number
  /** Length of the longest element; 0 if unknown because all are packed. */
  largestElementBytes: number
  /** Milliseconds since 1970; −1 if the key never expires. */
  expiresAtMs: number
  /** Seconds since the last access; −1 if the dump does not say. */
  idleSeconds: number
  /** LFU counter; −1 if the dump does not say. */
  frequency: number
  fieldsWithTtl: number
}

/** Receives what is read from a dump. */
export interface RdbVisitor {
  key(record: RdbRecord): void
  /** `redis-ver`, `ctime`, `used-mem` and the like. */
  auxiliary?(name: string, value: string): void
  /** Something was skipped or is only roughly known. */
  note?(text: string): void
}

/** Bounds for reading a dump. */
export interface RdbParserOptions {
  /** The dump's size, if known: lengths that exceed it are then refused at once. */
  readonly totalBytes?: number
  /** Longer keys are truncated to this. @default 65536 */
  readonly maxKeyBytes?: number
  /** A packed value whose entries must be walked is buffered up to this size. @default 16 MiB */
  readonly maxBlobBytes?: number
}

const eofOpcode = 255
const oldestVersion = 1
const newestRedisVersion = 13
const newestValkeyVersion = 80
const checksumSince = 5

/**
 * A streaming parser for Redis dumps (RDB 1 to 13, and Valkey's own from 80): bytes go in as they arrive, keys come
 * out.
 *
 * Values are skipped rather than decoded (see `value-shapes.ts`), so memory does not grow with their size and a
 * compressed string costs no decompression. What cannot be a dump is refused with the offset of the error; the checksum
 * at the end covers everything before it.
 */
export class RdbParser {
  readonly input: RdbInput
  /** Keys read so far. */
  keys = 0
  version = 0
  isValkey = false
  /** True once the end mark and the checksum have been read. */
  isDone = false
  readonly #visitor: RdbVisitor
  readonly #values: ValueReader
  readonly #maxKeyBytes: number
  #phase: 'magic' | 'opcode' | 'key' | 'value' | 'passing' | 'auxiliary' | 'checksum' = 'magic'
  #shapes = redisShapes
  #shape: Shape | undefined
  #auxiliaryName: string | undefined
  #textCopy = Buffer.alloc(256)
  readonly #record: RdbRecord = {
    database: 0,
    key: Buffer.alloc(0),
    type: 'string',
    encoding: '',
    bytes: 0,
    elements: 0,
    largestElementBytes: 0,
    expiresAtMs: -1,
    idleSeconds: -1,
    frequency: -1,
    fieldsWithTtl: 0,
  }

  constructor(visitor: RdbVisitor, options: RdbParserOptions = {}) {
    this.#visitor = visitor
    this.input = new RdbInput(options.totalBytes)
    this.#maxKeyBytes = options.maxKeyBytes ?? 65536
    this.#values = new ValueReader(this.input, options.maxBlobBytes ?? 16 << 20, (text) => visitor.note?.(text))
  }

  /** Takes the next bytes of the dump. */
  push(chunk: Uint8Array): void {
    if (this.isDone) return
    this.input.push(chunk)
    this.run()
  }

  /** Reads as far as the bytes in `input` reach. */
  run(): void {
    while (!this.isDone && this.#step()) {}
  }

  /** Ends the input: fails if the dump is incomplete. */
  end(): void {
    this.input.finish()
    this.run()
    if (!this.isDone) {
      throw new RdbError('FB_RDB_TRUNCATED', 'the dump has no end mark; it is truncated', this.input.offset)
    }
  }

  /** Reads one item; false if more bytes are needed first. */
  #step(): boolean {
    switch (this.#phase) {
      case 'magic':
        return this.#magic()
      case 'opcode':
        return this.#opcode()
      case 'key':
        return this.#key()
      case 'value':
        if (!this.#values.run()) return false
        this.#finishKey()
        return true
      case 'passing':
        if (!this.#values.run()) return false
        this.#phase = 'opcode'
        return true
      case 'auxiliary':
        return this.#auxiliary()
      case 'checksum':
        return this.#checksum()
    }
  }

  #magic(): boolean {
    const { input } = this
    if (!input.has(9)) return false
    input.need(9)
    const magic = input.bytes.toString('latin1', input.position, input.position + 9)
    const match = /^(?:REDIS(\d{4})|VALKEY(\d{3}))$/.exec(magic)
    if (match === null) {
      return input.fail(`this is not a dump: it begins with ${JSON.stringify(magic)} instead of "REDIS" and a version`)
    }
    this.isValkey = match[2] !== undefined
    this.version = Number(match[1] ?? match[2])
    const newest = this.isValkey ? newestValkeyVersion : newestRedisVersion
    if (this.version < oldestVersion || this.version > newest) {
      throw new RdbError(
        'FB_RDB_UNSUPPORTED',
        `version ${this.version} is not supported; ${this.isValkey ? 'Valkey' : 'Redis'} dumps up to ${newest} are`,
        input.offset,
      )
    }
    this.#shapes = this.isValkey ? valkeyShapes : redisShapes
    input.position += 9
    this.#phase = 'opcode'
    return true
  }

  #opcode(): boolean {
    const { input } = this
    if (!input.has(16)) return false
    const at = input.offset
    const code = input.byte()
    const record = this.#record
    const shape = this.#shapes[code]
    if (shape !== undefined) {
      this.#shape = shape
      this.#phase = 'key'
      return true
    }
    switch (code) {
      case eofOpcode:
        this.#phase = 'checksum'
        return true
      case 254:
        record.database = this.input.length()
        return true
      case 253:
        input.need(4)
        record.expiresAtMs = input.bytes.readInt32LE(input.position) * 1000
        input.position += 4
        return true
      case 252:
        input.need(8)
        record.expiresAtMs = Number(input.bytes.readBigInt64LE(input.position))
        input.position += 8
        return true
      case 250:
        this.#phase = 'auxiliary'
        return true
      case 249:
        record.frequency = input.byte()
        return true
      case 248:
        record.idleSeconds = this.input.length()
        return true
      case 243:
        return this.#pass(this.isValkey ? valkeySlotImport : redisKeyMetadata)
      default: {
        const steps = opcodeSteps[code]
        if (steps !== undefined) return this.#pass(steps)
        if (unreadable[code] !== undefined) {
          throw new RdbError('FB_RDB_UNSUPPORTED', `${unreadable[code]} cannot be skipped`, at)
        }
        return input.fail(`${code} is neither a type nor an opcode of version ${this.version}`, at)
      }
    }
  }

  #pass(steps: readonly Step[]): boolean {
    this.#values.begin(steps)
    this.#phase = 'passing'
    return true
  }

  #key(): boolean {
    const name = this.#text()
    if (name === undefined) return false
    this.#record.key = name
    this.#values.begin(this.#shape!.steps)
    this.#phase = 'value'
    return true
  }

  #finishKey(): void {
    const record = this.#record
    const shape = this.#shape!
    const values = this.#values
    record.type = shape.type
    record.encoding = values.stringEncoding ?? shape.encoding
    record.elements = values.tally.elements
    record.largestElementBytes = values.tally.largestBytes
    record.fieldsWithTtl = values.fieldsWithTtl
    record.bytes = Math.round(
      keyMemory(record.key.length) + (values.stringBytes ?? valueMemory(shape.type, shape.encoding, values.tally)),
    )
    this.keys++
    this.#visitor.key(record)
    record.expiresAtMs = -1
    record.idleSeconds = -1
    record.frequency = -1
    this.#phase = 'opcode'
  }

  #auxiliary(): boolean {
    const text = this.#text()
    if (text === undefined) return false
    if (this.#auxiliaryName === undefined) {
      this.#auxiliaryName = text.toString('latin1')
      return true
    }
    this.#visitor.auxiliary?.(this.#auxiliaryName, text.toString('latin1'))
    this.#auxiliaryName = undefined
    this.#phase = 'opcode'
    return true
  }

  #checksum(): boolean {
    const { input } = this
    if (this.version < checksumSince) {
      if (!input.has(1)) return false
      if (input.position < input.end)
        input.fail(`bytes follow the end mark, which version ${this.version} does not have`)
      this.isDone = true
      return true
    }
    if (!input.has(8)) return false
    input.need(8)
    const computed = input.checksum
    const stored = input.bytes.readBigUInt64LE(input.position)
    if (stored !== 0n && stored !== computed) {
      throw new RdbError(
        'FB_RDB_CHECKSUM',
        `the checksum is ${stored.toString(16)} but the content gives ${computed.toString(16)}; the dump is damaged`,
        input.offset,
      )
    }
    if (stored === 0n) this.#visitor.note?.('the dump was written without a checksum')
    input.position += 8
    this.isDone = true
    return true
  }

  /**
   * A whole string, up to `maxKeyBytes` of it; undefined if more bytes must arrive first. It is a copy (the window over
   * the input moves on while the value is read) that the next call overwrites.
   */
  #text(): Buffer | undefined {
    const { input } = this
    const start = input.position
    if (!input.has(32)) return undefined
    input.readHead()
    if (input.headKind === 'integer') return Buffer.from(String(input.headInteger), 'latin1')
    const wanted = Math.min(input.headLength, this.#maxKeyBytes)
    const stored = input.headKind === 'compressed' ? Math.min(input.headStored, 2 * wanted + 2) : wanted
    if (!input.has(stored)) {
      input.position = start
      return undefined
    }
    input.need(stored)
    const from = input.position
    input.skip(input.headStored)
    if (wanted < input.headLength) this.#visitor.note?.(`a key of ${input.headLength} bytes was truncated`)
    if (input.headKind === 'plain') {
      if (wanted > this.#textCopy.length) this.#textCopy = Buffer.alloc(2 * wanted)
      input.bytes.copy(this.#textCopy, 0, from, from + wanted)
      return this.#textCopy.subarray(0, wanted)
    }
    const text = decompressLzf(input.bytes, from, from + stored, wanted)
    if (text === undefined) return input.fail('a compressed string cannot be decompressed', this.input.offset)
    return Buffer.from(text.buffer)
  }
}
