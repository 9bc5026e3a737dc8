import { TopK, type TopKItem } from './top-k.ts'

/** A finished interval, to be read once, in steps. */
export interface AccessDrain<Key> {
  /** All accesses, writes and bytes of the interval, including keys beyond the bound. */
  readonly totalCount: number
  readonly totalWrites: number
  readonly totalBytes: number
  /** Number of keys in the drain. */
  readonly keyCount: number
  /** How much a count of a key beyond the bound may be too low; 0 if all counts are exact. */
  readonly errorBound: number
  /** Passes at most `maxKeys` keys with their counts to `visit`; false once there are no more. */
  take(maxKeys: number, visit: DrainVisitor<Key>): boolean
}

/** Receives one key's accesses (including writes), writes and bytes. */
export type DrainVisitor<Key> = (key: Key, count: number, writes: number, bytes: number) => void

/** The exact counts of one interval, for some kind of key. */
export interface IntervalTable<Key> {
  readonly size: number
  /** Sums of the three counts over all keys. */
  sums(): [count: number, writes: number, bytes: number]
  /** Passes the next `maxKeys` keys to `visit`, in the order of their first access. */
  take(maxKeys: number, visit: DrainVisitor<Key>): void
  /** Empties the table for the next interval. */
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

/** Reads a table and then its overflow; empties the table at the end. */
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
