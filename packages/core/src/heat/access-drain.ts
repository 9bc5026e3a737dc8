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
  take(maxKeys: number, visit: DrainVisitor<Key>): boolean
}

/** Gets one key's accesses (writes included), writes and bytes. */
export type DrainVisitor<Key> = (key: Key, count: number, writes: number, bytes: number) => void

/** The exact counts of one interval, by whatever kind of key. */
export interface IntervalTable<Key> {
  readonly size: number
  /** Sums of the three counts over all keys. */
  sums(): [count: number, writes: number, bytes: number]
  /** Hands over the next `maxKeys` keys in the order they came in. */
  take(maxKeys: number, visit: DrainVisitor<Key>): void
  /** Empties the table and starts over. */
  clear(): void
}

/** The accesses of keys beyond an interval's bound. */
export class Overflow {
  readonly keys: TopK
  writes = 0
  bytes = 0

  constructor(capacity: number) {
    this.keys = new TopK({ capacity })
  }

  add(name: string, isWrite: boolean, bytes: number): number {
    if (isWrite) this.writes++
    this.bytes += bytes
    return this.keys.add(name, 1, isWrite ? 1 : 0, bytes)
  }
}

/** Reads a table and then what overflowed it; empties the table at the end. */
export class IntervalDrain<Key> implements AccessDrain<Key> {
  readonly totalCount: number
  readonly totalWrites: number
  readonly totalBytes: number
  readonly keyCount: number
  readonly errorBound: number
  readonly #table: IntervalTable<Key>
  readonly #overflow: IterableIterator<Readonly<TopKItem>> | undefined
  readonly #keyOfName: (name: string) => Key
  #exactLeft: number
  #overflowLeft: number
  #isDone = false

  constructor(table: IntervalTable<Key>, overflow: Overflow | undefined, keyOfName: (name: string) => Key) {
    const [count, writes, bytes] = table.sums()
    this.totalCount = count + (overflow?.keys.totalCount ?? 0)
    this.totalWrites = writes + (overflow?.writes ?? 0)
    this.totalBytes = bytes + (overflow?.bytes ?? 0)
    this.#exactLeft = table.size
    this.#overflowLeft = overflow?.keys.size ?? 0
    this.keyCount = this.#exactLeft + this.#overflowLeft
    this.errorBound = overflow?.keys.errorBound ?? 0
    this.#table = table
    this.#overflow = overflow?.keys.items()
    this.#keyOfName = keyOfName
    this.#finishAtEnd()
  }

  get isDone(): boolean {
    return this.#isDone
  }

  take(maxKeys: number, visit: DrainVisitor<Key>): boolean {
    const exact = Math.min(maxKeys, this.#exactLeft)
    if (exact > 0) this.#table.take(exact, visit)
    this.#exactLeft -= exact
    for (let left = Math.min(maxKeys - exact, this.#overflowLeft); left > 0; left--) {
      const { key, count, writes, bytes } = this.#overflow!.next().value as TopKItem
      visit(this.#keyOfName(key), count, writes, bytes)
      this.#overflowLeft--
    }
    this.#finishAtEnd()
    return !this.#isDone
  }

  #finishAtEnd(): void {
    if (this.#isDone || this.#exactLeft + this.#overflowLeft > 0) return
    this.#isDone = true
    this.#table.clear()
  }
}
