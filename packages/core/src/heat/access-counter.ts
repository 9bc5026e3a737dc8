import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { type AccessDrain, type DrainVisitor, IntervalDrain, type IntervalTable, Overflow } from './access-drain.ts'

/** How many keys a counter counts in an interval. */
export interface AccessCounterOptions {
  /** Keys counted exactly in an interval. @default 65536 */
  readonly maxKeys?: number
  /** Counters for keys beyond that. @default 4096 */
  readonly overflowKeys?: number
}

/** Words of a key: accesses, writes, bytes. */
const wordsPerKey = 3
const maxUint32 = 0xffff_ffff

class StringTable implements IntervalTable<string> {
  /** Key → its first word. */
  places = new Map<string, number>()
  words = new Uint32Array(1024 * wordsPerKey)
  #keys: IterableIterator<string> | undefined
  #taken = 0

  get size(): number {
    return this.places.size
  }

  /** Adds a new key and returns its place. */
  insert(key: string): number {
    const place = this.places.size * wordsPerKey
    if (place === this.words.length) {
      const larger = new Uint32Array(place * 2)
      larger.set(this.words)
      this.words = larger
    }
    this.places.set(key, place)
    return place
  }

  sums(): [number, number, number] {
    let count = 0
    let writes = 0
    let bytes = 0
    for (let place = 0; place < this.size * wordsPerKey; place += wordsPerKey) {
      count += this.words[place]!
      writes += this.words[place + 1]!
      bytes += this.words[place + 2]!
    }
    return [count, writes, bytes]
  }

  take(maxKeys: number, visit: DrainVisitor<string>): void {
    this.#keys ??= this.places.keys()
    const { words } = this
    const end = Math.min(this.size, this.#taken + maxKeys) * wordsPerKey
    let place = this.#taken * wordsPerKey
    // Leaving the loop does not end a Map's iterator: the next call continues where this one stops.
    for (const key of this.#keys) {
      visit(key, words[place]!, words[place + 1]!, words[place + 2]!)
      place += wordsPerKey
      if (place >= end) break
    }
    this.#taken = end / wordsPerKey
  }

  clear(): void {
    this.words.fill(0, 0, this.size * wordsPerKey)
    this.places = new Map()
    this.#keys = undefined
    this.#taken = 0
  }
}

const asItIs = (name: string) => name

/**
 * The shield's counter: exact counts of every key in an interval, for less than a `Map` of counts would cost.
 *
 * The `Map` gives a key's place in a `Uint32Array` and is not written again for a known key: one look-up and one
 * increment, no second hash, no allocation. A Map iterates its keys in insertion order, which is also the order of
 * their places, so no separate list of keys is needed. There are two such tables. `swap` makes the other one current
 * and returns the finished interval as a *drain*, which is read in steps as small as the caller likes while counting
 * continues. Tables are emptied between intervals: keeping known keys would save insertions, but a table of all keys
 * ever seen does not fit the CPU's cache and was a third slower (`npm run -s bench -- heat`).
 *
 * For keys as bytes, use `ByteAccessCounter`.
 *
 * Bounds. An interval has at most `maxKeys` exact keys; accesses to further new keys go to a `TopK`, whose rows come
 * last in the drain, along with its error bound. A key's bytes are counted up to 4 GiB per interval.
 */
export class AccessCounter {
  readonly maxKeys: number
  readonly overflowKeys: number
  #table = new StringTable()
  #otherTable = new StringTable()
  #places = this.#table.places
  #words = this.#table.words
  #overflow: Overflow | undefined
  #drain: IntervalDrain<string> | undefined

  constructor(options: AccessCounterOptions = {}) {
    const { maxKeys, overflowKeys } = resolveCounterOptions(options)
    this.maxKeys = maxKeys
    this.overflowKeys = overflowKeys
  }

  /** Keys of the current interval with exact counts. */
  get keyCount(): number {
    return this.#table.size
  }

  /** Accesses of the current interval; summed on demand, which takes some 0.1 ms for the maximum number of keys. */
  get totalCount(): number {
    return this.#table.sums()[0] + (this.#overflow?.keys.totalCount ?? 0)
  }

  /** Counts one access; returns the key's count in this interval. */
  add(key: string, isWrite = false, bytes = 0): number {
    const place = this.#places.get(key)
    if (place === undefined) return this.#addNew(key, isWrite, bytes)
    const words = this.#words
    const count = words[place]! + 1
    words[place] = count
    if (isWrite) words[place + 1]!++
    if (bytes > 0) words[place + 2] = Math.min(maxUint32, words[place + 2]! + bytes)
    return count
  }

  /** A key's count in this interval. */
  countOf(key: string): number {
    const place = this.#places.get(key)
    return place === undefined ? (this.#overflow?.keys.get(key)?.count ?? 0) : this.#words[place]!
  }

  /**
   * Ends the interval and starts the next. Undefined while the previous interval's drain has not been read to its end:
   * then the interval continues and nothing is lost.
   */
  swap(): AccessDrain<string> | undefined {
    if (this.#drain?.isDone === false) return undefined
    const ended = this.#table
    this.#drain = new IntervalDrain(ended, this.#overflow, asItIs)
    this.#overflow = undefined
    this.#table = this.#otherTable
    this.#otherTable = ended
    this.#places = this.#table.places
    this.#words = this.#table.words
    return this.#drain
  }

  #addNew(key: string, isWrite: boolean, bytes: number): number {
    if (this.#table.size >= this.maxKeys) {
      this.#overflow ??= new Overflow(this.overflowKeys)
      return this.#overflow.add(key, isWrite, bytes)
    }
    const place = this.#table.insert(key)
    this.#words = this.#table.words
    this.#words[place] = 1
    if (isWrite) this.#words[place + 1] = 1
    this.#words[place + 2] = Math.min(maxUint32, bytes)
    return 1
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
