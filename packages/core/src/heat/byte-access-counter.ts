import { Dict } from '../dict/dict.ts'
import { keyBytes, keyName } from '../keys/key-text.ts'
import { type AccessCounterOptions, resolveCounterOptions } from './access-counter.ts'
import { type AccessDrain, CountBuffers } from './count-buffers.ts'
import type { IntervalCounts } from './interval-counts.ts'

/** The bytes of keys known to a counter, with the buffers over them. */
class ByteKeyTable {
  readonly dict: Dict
  readonly buffers: CountBuffers<Uint8Array>

  constructor(overflowKeys: number, hashSeed: number) {
    this.dict = new Dict({ hashSeed })
    this.buffers = new CountBuffers(overflowKeys)
  }
}

/**
 * What `AccessCounter` is for strings, for keys that are bytes inside a larger buffer, as a proxy has them: no string
 * is made, and a hash that the caller already has is used. The same bounds hold.
 */
export class ByteAccessCounter {
  readonly maxKeys: number
  readonly overflowKeys: number
  /** The seed that a given hash must have been made with (`hashBytes`). */
  readonly hashSeed: number
  #table: ByteKeyTable
  #counts: IntervalCounts
  #last: CountBuffers<Uint8Array> | undefined

  constructor(options: AccessCounterOptions & { readonly hashSeed?: number } = {}) {
    const { maxKeys, overflowKeys } = resolveCounterOptions(options)
    this.maxKeys = maxKeys
    this.overflowKeys = overflowKeys
    this.hashSeed = options.hashSeed ?? 0
    this.#table = new ByteKeyTable(overflowKeys, this.hashSeed)
    this.#counts = this.#table.buffers.current
  }

  get keyCount(): number {
    return this.#counts.keyCount
  }

  get totalCount(): number {
    return this.#counts.count
  }

  hash(bytes: Uint8Array, start: number, end: number): number {
    return this.#table.dict.hash(bytes, start, end)
  }

  /** Counts one access of the key from `start` to `end`; gives what was counted of it in this interval. */
  add(bytes: Uint8Array, start: number, end: number, hash: number, isWrite = false, byteCount = 0): number {
    const counts = this.#counts
    const { dict } = this.#table
    if (counts.keyCount < this.maxKeys) {
      const index = dict.findOrInsert(bytes, start, end, hash)
      if (index >= 0) return counts.add(index, isWrite, byteCount)
    } else {
      const index = dict.find(bytes, start, end, hash)
      if (index >= 0 && counts.countOf(index) > 0) return counts.add(index, isWrite, byteCount)
    }
    return this.#table.buffers.addOverflow(keyName(bytes.subarray(start, end)), isWrite, byteCount)
  }

  /** As `AccessCounter.swap`; a key's bytes are a view that holds until the visitor returns. */
  swap(): AccessDrain<Uint8Array> | undefined {
    if (this.#last?.isDraining) return undefined
    const { dict, buffers } = this.#table
    const drain = buffers.swap((index) => dict.keyAt(index), keyBytes)
    this.#last = buffers
    if (dict.size > this.maxKeys) this.#table = new ByteKeyTable(this.overflowKeys, this.hashSeed)
    this.#counts = this.#table.buffers.current
    return drain
  }
}
