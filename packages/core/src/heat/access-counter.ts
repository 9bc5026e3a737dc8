import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { type AccessDrain, CountBuffers } from './count-buffers.ts'
import type { IntervalCounts } from './interval-counts.ts'

/**
 * The shield's counter: exact counts of every key of an interval, at less than the price of a `Map` of counts.
 *
 * A known key costs one look-up and one increment in a typed array: no second hash, no allocation. **Keys outlive the
 * interval**: most keys of one interval come again in the next, so only their counts are cleared. There are two buffers
 * of counts over one table of keys; `swap` makes the other one current and gives the interval that has ended as a
 * *drain*, which is read and cleared in steps as small as the caller likes, while counting goes on beside it. Once the
 * table knows more than `maxKeys` keys it is left to its last drain and a new one begun, so nothing is ever swept.
 *
 * Bounds. An interval has at most `maxKeys` exact keys; the accesses of further new keys go to a `TopK`, whose rows come
 * last in the drain and whose error bound the drain states. Never more than 2 · `maxKeys` keys are known.
 */
export interface AccessCounterOptions {
  /** Keys counted exactly in an interval. @default 65536 */
  readonly maxKeys?: number
  /** Counters for the keys beyond. @default 4096 */
  readonly overflowKeys?: number
}

/** The keys known to a counter, with the buffers over them. */
class KeyTable {
  readonly indices = new Map<string, number>()
  readonly keys: string[] = []
  readonly buffers: CountBuffers<string>

  constructor(overflowKeys: number) {
    this.buffers = new CountBuffers(overflowKeys)
  }
}

const asItIs = (name: string) => name

/** Counts accesses by string key; for keys as bytes there is `ByteAccessCounter`. */
export class AccessCounter {
  readonly maxKeys: number
  readonly overflowKeys: number
  #table: KeyTable
  #indices: Map<string, number>
  #counts: IntervalCounts
  #last: CountBuffers<string> | undefined

  constructor(options: AccessCounterOptions = {}) {
    const { maxKeys, overflowKeys } = resolveCounterOptions(options)
    this.maxKeys = maxKeys
    this.overflowKeys = overflowKeys
    this.#table = new KeyTable(overflowKeys)
    this.#indices = this.#table.indices
    this.#counts = this.#table.buffers.current
  }

  /** Keys of the current interval that are counted exactly. */
  get keyCount(): number {
    return this.#counts.keyCount
  }

  /** Accesses of the current interval. */
  get totalCount(): number {
    return this.#counts.count
  }

  /** Counts one access; gives what was counted of the key in this interval. */
  add(key: string, isWrite = false, bytes = 0): number {
    const index = this.#indices.get(key)
    if (index !== undefined) {
      const counts = this.#counts
      if (counts.keyCount < this.maxKeys || counts.countOf(index) > 0) return counts.add(index, isWrite, bytes)
    }
    return this.#addNew(key, isWrite, bytes)
  }

  /**
   * Ends the interval and begins the next. Undefined while the drain of the interval before is not read to its end:
   * the interval goes on, nothing is lost.
   */
  swap(): AccessDrain<string> | undefined {
    if (this.#last?.isDraining) return undefined
    const { keys, buffers } = this.#table
    const drain = buffers.swap((index) => keys[index]!, asItIs)
    this.#last = buffers
    if (keys.length > this.maxKeys) this.#table = new KeyTable(this.overflowKeys)
    this.#indices = this.#table.indices
    this.#counts = this.#table.buffers.current
    return drain
  }

  #addNew(key: string, isWrite: boolean, bytes: number): number {
    if (this.#counts.keyCount >= this.maxKeys) return this.#table.buffers.addOverflow(key, isWrite, bytes)
    const { keys } = this.#table
    const index = keys.length
    keys.push(key)
    this.#indices.set(key, index)
    return this.#counts.add(index, isWrite, bytes)
  }
}

/** @internal */
export function resolveCounterOptions(options: AccessCounterOptions): Required<AccessCounterOptions> {
  const { maxKeys = 65_536, overflowKeys = 4096 } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1) {
    throw new InvalidOptionError('maxKeys', maxKeys, 'a whole number of at least 1')
  }
  return { maxKeys, overflowKeys }
}
