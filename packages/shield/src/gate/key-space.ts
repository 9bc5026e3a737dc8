import type { HotKey } from '../cache/hot-key.ts'
import { HotTable } from '../cache/hot-table.ts'
import { OwnCopies } from '../copies/own-copies.ts'
import type { Upstream } from '../watcher/upstream.ts'

/**
 * The keys of one database as one identity may read them. A key of the same name in another database, or read by a user
 * with other rights, is another entry.
 */
export class KeySpace {
  readonly id: string
  /** As whom the keys are read; empty for the application itself. */
  readonly identity: string
  readonly database: number
  /** Where and as whom the keys are read. */
  readonly upstream: Upstream
  /** The hot keys by name; this is the one look-up that a cold access pays. */
  readonly hot: ReadonlyMap<string, HotKey>
  /** The same by their bytes. */
  readonly byBytes = new HotTable()
  /** Its copies of hot keys. */
  readonly ownCopies = new OwnCopies()
  readonly #hot = new Map<string, HotKey>()

  constructor(identity: string, database: number, upstream: Upstream) {
    this.identity = identity
    this.id = `${database} ${identity}`
    this.database = database
    this.upstream = upstream
    this.hot = this.#hot
  }

  /** Adds a key whose bytes have this hash. */
  add(hot: HotKey, hash: number): void {
    this.#hot.set(hot.name, hot)
    this.byBytes.add(hot, hash)
  }

  remove(hot: HotKey): void {
    this.#hot.delete(hot.name)
    this.byBytes.remove(hot)
  }
}
