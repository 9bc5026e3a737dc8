import { Dict } from '../dict/dict.ts'
import { keyBytes, keyName } from '../keys/key-text.ts'
import { type AccessCounterOptions, resolveCounterOptions } from './access-counter.ts'
import { type AccessDrain, type DrainVisitor, IntervalDrain, type IntervalTable, Overflow } from './access-drain.ts'

const maxUint32 = 0xffff_ffff

class ByteTable implements IntervalTable<Uint8Array> {
  readonly dict: Dict
  #taken = 0

  constructor(hashSeed: number) {
    this.dict = new Dict({ payloadWords: 3, hashSeed })
  }

  get size(): number {
    return this.dict.size
  }

  /** Counts one access of the entry at `index`; returns its count. */
  count(index: number, isWrite: boolean, bytes: number): number {
    const words = this.dict.wordsOf(index)
    const place = this.dict.payloadAt(index)
    const count = words[place]! + 1
    words[place] = count
    if (isWrite) words[place + 1]!++
    // The words are signed; the bytes use all 32 bits.
    if (bytes > 0) words[place + 2] = Math.min(maxUint32, (words[place + 2]! >>> 0) + bytes)
    return count
  }

  sums(): [number, number, number] {
    let count = 0
    let writes = 0
    let bytes = 0
    for (let index = 0; index < this.size; index++) {
      const words = this.dict.wordsOf(index)
      const place = this.dict.payloadAt(index)
      count += words[place]!
      writes += words[place + 1]!
      bytes += words[place + 2]! >>> 0
    }
    return [count, writes, bytes]
  }

  take(maxKeys: number, visit: DrainVisitor<Uint8Array>): void {
    // Nothing is ever deleted, so the indices in use are 0 to size - 1.
    const end = Math.min(this.size, this.#taken + maxKeys)
    for (let index = this.#taken; index < end; index++) {
      const words = this.dict.wordsOf(index)
      const place = this.dict.payloadAt(index)
      visit(this.dict.keyAt(index), words[place]!, words[place + 1]!, words[place + 2]! >>> 0)
    }
    this.#taken = end
  }

  clear(): void {
    this.dict.clear()
    this.#taken = 0
  }
}

/**
 * `AccessCounter` for keys that are bytes inside a larger buffer, as in a proxy: no string is made, and a hash that the
 * caller already has is reused. The same bounds apply.
 */
export class ByteAccessCounter {
  readonly maxKeys: number
  readonly overflowKeys: number
  /** The seed that a given hash must have been computed with (`hashBytes`). */
  readonly hashSeed: number
  #table: ByteTable
  #otherTable: ByteTable
  #overflow: Overflow | undefined
  #drain: IntervalDrain<Uint8Array> | undefined

  constructor(options: AccessCounterOptions & { readonly hashSeed?: number } = {}) {
    const { maxKeys, overflowKeys } = resolveCounterOptions(options)
    this.maxKeys = maxKeys
    this.overflowKeys = overflowKeys
    this.hashSeed = options.hashSeed ?? 0
    this.#table = new ByteTable(this.hashSeed)
    this.#otherTable = new ByteTable(this.hashSeed)
  }

  get keyCount(): number {
    return this.#table.size
  }

  get totalCount(): number {
    return this.#table.sums()[0] + (this.#overflow?.keys.totalCount ?? 0)
  }

  hash(bytes: Uint8Array, start: number, end: number): number {
    return this.#table.dict.hash(bytes, start, end)
  }

  /** Counts one access of the key from `start` to `end`; returns its count in this interval. */
  add(bytes: Uint8Array, start: number, end: number, hash: number, isWrite = false, byteCount = 0): number {
    const { dict } = this.#table
    const isFull = dict.size >= this.maxKeys
    const index = isFull ? dict.find(bytes, start, end, hash) : dict.findOrInsert(bytes, start, end, hash)
    if (index >= 0) return this.#table.count(index, isWrite, byteCount)
    this.#overflow ??= new Overflow(this.overflowKeys)
    return this.#overflow.add(keyName(bytes.subarray(start, end)), isWrite, byteCount)
  }

  /** Like `AccessCounter.swap`; a key's bytes are a view that is valid until the drain is done. */
  swap(): AccessDrain<Uint8Array> | undefined {
    if (this.#drain?.isDone === false) return undefined
    const ended = this.#table
    this.#drain = new IntervalDrain(ended, this.#overflow, keyBytes)
    this.#overflow = undefined
    this.#table = this.#otherTable
    this.#otherTable = ended
    return this.#drain
  }
}
