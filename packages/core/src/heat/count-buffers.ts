import { IntervalCounts } from './interval-counts.ts'
import { TopK, type TopKItem } from './top-k.ts'

/** One ended interval, to be read once, in steps. */
export interface AccessDrain<Key> {
  /** All accesses, writes and bytes of the interval, of keys beyond the bound too. */
  readonly totalCount: number
  readonly totalWrites: number
  readonly totalBytes: number
  /** Keys in the drain. */
  readonly keyCount: number
  /** By how much a count of a key beyond the bound may be too small; 0 where all were exact. */
  readonly errorBound: number
  /** Hands over at most `maxKeys` keys with their counts; false once there are no more. */
  take(maxKeys: number, visit: AccessVisitor<Key>): boolean
}

/** Gets one key's accesses (writes included), writes and bytes. */
export type AccessVisitor<Key> = (key: Key, count: number, writes: number, bytes: number) => void

/** Two buffers of counts, one being filled and one being read; shared by the counters of string and byte keys. */
export class CountBuffers<Key> {
  readonly #overflowKeys: number
  #current = new IntervalCounts()
  #other = new IntervalCounts()
  #overflow: TopK | undefined
  #drain: BufferDrain<Key> | undefined

  constructor(overflowKeys: number) {
    this.#overflowKeys = overflowKeys
  }

  get current(): IntervalCounts {
    return this.#current
  }

  /** True while the last interval is not read to its end. */
  get isDraining(): boolean {
    return this.#drain?.isDone === false
  }

  addOverflow(key: string, isWrite: boolean, bytes: number): number {
    const counts = this.#current
    counts.count++
    if (isWrite) counts.writes++
    counts.bytes += bytes
    this.#overflow ??= new TopK({ capacity: this.#overflowKeys })
    return this.#overflow.add(key, 1, isWrite ? 1 : 0, bytes)
  }

  swap(keyOf: (index: number) => Key, overflowKeyOf: (name: string) => Key): AccessDrain<Key> {
    const ended = this.#current
    const drain = new BufferDrain(ended, this.#overflow, keyOf, overflowKeyOf)
    this.#current = this.#other
    this.#other = ended
    this.#overflow = undefined
    this.#drain = drain
    return drain
  }
}

class BufferDrain<Key> implements AccessDrain<Key> {
  readonly totalCount: number
  readonly totalWrites: number
  readonly totalBytes: number
  readonly keyCount: number
  readonly errorBound: number
  isDone = false
  readonly #counts: IntervalCounts
  readonly #overflow: IterableIterator<Readonly<TopKItem>> | undefined
  readonly #keyOf: (index: number) => Key
  readonly #overflowKeyOf: (name: string) => Key
  #taken = 0

  constructor(
    counts: IntervalCounts,
    overflow: TopK | undefined,
    keyOf: (index: number) => Key,
    overflowKeyOf: (name: string) => Key,
  ) {
    this.totalCount = counts.count
    this.totalWrites = counts.writes
    this.totalBytes = counts.bytes
    this.keyCount = counts.keyCount + (overflow?.size ?? 0)
    this.errorBound = overflow?.errorBound ?? 0
    this.#counts = counts
    this.#overflow = overflow?.items()
    this.#keyOf = keyOf
    this.#overflowKeyOf = overflowKeyOf
    if (this.keyCount === 0) this.#finish()
  }

  take(maxKeys: number, visit: AccessVisitor<Key>): boolean {
    if (this.isDone) return false
    const exact = Math.min(maxKeys, this.#counts.keyCount - this.#taken)
    if (exact > 0) {
      const keyOf = this.#keyOf
      this.#counts.take(this.#taken, exact, (index, count, writes, bytes) => visit(keyOf(index), count, writes, bytes))
      this.#taken += exact
    }
    for (let left = maxKeys - exact; left > 0 && this.#overflow !== undefined; left--) {
      const { done, value } = this.#overflow.next()
      if (done) break
      visit(this.#overflowKeyOf(value.key), value.count, value.writes, value.bytes)
      this.#taken++
    }
    if (this.#taken >= this.keyCount) this.#finish()
    return !this.isDone
  }

  #finish(): void {
    this.isDone = true
    this.#counts.reset()
  }
}
