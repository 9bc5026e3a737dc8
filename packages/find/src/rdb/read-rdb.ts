import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { BigKeyCollector, type BigKeyOptions, type BigKeys } from '../keys/big-key-collector.ts'
import { RdbParser, type RdbParserOptions, type RdbRecord } from './rdb-parser.ts'

/** How a dump is searched for big keys. */
export interface ReadRdbOptions extends BigKeyOptions, RdbParserOptions {
  /** Called periodically with the progress. */
  readonly progress?: (bytes: number, totalBytes: number | undefined, keys: number) => void
  /** Stops reading early: the result is what was found until then. */
  readonly signal?: AbortSignal
  /** The time that TTLs are relative to. @default the time of the dump, or now */
  readonly nowMs?: number
}

/** The contents of a dump. */
export interface RdbResult extends BigKeys {
  readonly version: number
  readonly isValkey: boolean
  /** `redis-ver`, `used-mem` and the like. */
  readonly auxiliary: Readonly<Record<string, string>>
  readonly notes: readonly string[]
  readonly bytesRead: number
  /** False if reading was stopped early or failed. */
  readonly isComplete: boolean
  /** Why reading stopped before the end, if it did. */
  readonly error: Error | undefined
}

const chunkBytes = 1 << 20

/** Finds big keys in a dump file. A damaged file gives what was read before the damage, and the error. */
export async function readRdbFile(path: string, options: ReadRdbOptions = {}): Promise<RdbResult> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const reading = new RdbReading({ ...options, totalBytes: size })
    await reading.guard(async () => {
      const { input } = reading.parser
      while (!reading.isOver) {
        const { bytesRead } = await file.read(input.reserve(chunkBytes), 0, chunkBytes)
        if (bytesRead === 0) break
        input.grow(bytesRead)
        reading.advance()
      }
    })
    return reading.result()
  } finally {
    await file.close()
  }
}

/** Finds big keys in a dump that arrives as a stream: a pipe, or a server sending one to its replica. */
export async function readRdbStream(
  stream: Readable | AsyncIterable<Uint8Array>,
  options: ReadRdbOptions = {},
): Promise<RdbResult> {
  const reading = new RdbReading(options)
  await reading.guard(async () => {
    for await (const chunk of stream) {
      reading.parser.input.push(chunk as Uint8Array)
      reading.advance()
      if (reading.isOver) break
    }
  })
  return reading.result()
}

/** One reading of a dump: parser and collector together. */
class RdbReading {
  readonly parser: RdbParser
  readonly #options: ReadRdbOptions
  readonly #collector: BigKeyCollector
  readonly #auxiliary: Record<string, string> = {}
  readonly #notes = new Set<string>()
  #nowMs: number
  #error: Error | undefined

  constructor(options: ReadRdbOptions) {
    this.#options = options
    this.#collector = new BigKeyCollector(options)
    this.#nowMs = options.nowMs ?? Date.now()
    this.parser = new RdbParser(
      {
        key: (record) => this.#key(record),
        auxiliary: (name, value) => {
          if (Object.keys(this.#auxiliary).length < 100) this.#auxiliary[name] = value
          if (name === 'ctime' && options.nowMs === undefined) this.#nowMs = Number(value) * 1000
        },
        note: (text) => {
          if (this.#notes.size < 100) this.#notes.add(text)
        },
      },
      options,
    )
  }

  get isOver(): boolean {
    return this.parser.isDone || this.#options.signal?.aborted === true
  }

  advance(): void {
    this.parser.run()
    this.#options.progress?.(this.parser.input.offset, this.parser.input.totalBytes, this.parser.keys)
  }

  /** Runs the reading; an error in the dump ends it and becomes part of the result. */
  async guard(read: () => Promise<void>): Promise<void> {
    try {
      await read()
      if (!this.isOver) this.parser.end()
    } catch (error) {
      this.#error = error as Error
    }
  }

  result(): RdbResult {
    return {
      ...this.#collector.result(),
      version: this.parser.version,
      isValkey: this.parser.isValkey,
      auxiliary: this.#auxiliary,
      notes: [...this.#notes],
      bytesRead: this.parser.input.offset,
      isComplete: this.parser.isDone,
      error: this.#error,
    }
  }

  #key(record: RdbRecord): void {
    this.#candidate.key = record.key
    this.#candidate.type = record.type
    this.#candidate.bytes = record.bytes
    this.#candidate.elements = record.elements
    this.#candidate.hasTtl = record.expiresAtMs >= 0
    this.#candidate.record = record
    this.#collector.add(this.#candidate, this.#details)
  }

  readonly #candidate = {
    key: Buffer.alloc(0) as Buffer,
    type: 'string' as RdbRecord['type'],
    bytes: 0,
    elements: 0,
    hasTtl: false,
    record: undefined as RdbRecord | undefined,
  }

  readonly #details = () => {
    const record = this.#candidate.record!
    return {
      database: record.database,
      encoding: record.encoding,
      ...(record.largestElementBytes > 0 ? { largestElementBytes: record.largestElementBytes } : {}),
      ...(record.expiresAtMs >= 0 ? { ttlMs: Math.max(0, record.expiresAtMs - this.#nowMs) } : {}),
      ...(record.fieldsWithTtl > 0 ? { fieldsWithTtl: record.fieldsWithTtl } : {}),
      ...(record.idleSeconds >= 0 ? { idleSeconds: record.idleSeconds } : {}),
      ...(record.frequency >= 0 ? { frequency: record.frequency } : {}),
    }
  }
}
