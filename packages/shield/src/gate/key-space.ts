import type { HotKey } from '../cache/hot-key.ts'
import { OwnCopies } from '../copies/own-copies.ts'
import type { Upstream } from '../watcher/upstream.ts'
import { type NameLookup, noNames } from './hot-names.ts'

/**
 * The keys of one database as one identity may read them. A key of the same name in another database, or read by a user
 * with other permissions, is another entry.
 */
export class KeySpace {
  readonly id: string
  /** The identity that the keys are read as; empty for the application itself. */
  readonly identity: string
  readonly database: number
  /** Where and as whom to read the keys. */
  readonly upstream: Upstream
  /** The hot keys by name; this is the one look-up that a cold access pays for. */
  readonly hot: SpaceKeys
  /** The same by their bytes. */
  readonly byBytes: Pick<SpaceKeys, 'size' | 'find'>
  /** Those of its hot keys that were ever requested. */
  readonly made = new Set<HotKey>()
  /** True once nobody reads these keys any more: its connections are about to be closed. */
  isClosed = false
  /** Its copies of hot keys. */
  readonly ownCopies = new OwnCopies()

  constructor(identity: string, database: number, upstream: Upstream, names: NameLookup = noNames) {
    this.identity = identity
    this.id = `${database} ${identity}`
    this.database = database
    this.upstream = upstream
    this.hot = this.byBytes = new SpaceKeys(this, names)
  }
}

/** The hot keys of one space. */
export class SpaceKeys {
  readonly #space: KeySpace
  readonly #names: NameLookup

  constructor(space: KeySpace, names: NameLookup) {
    this.#space = space
    this.#names = names
  }

  /** How many names are hot. */
  get size(): number {
    return this.#names.size
  }

  get(name: string): HotKey | undefined {
    return this.#names.get(name)?.in(this.#space)
  }

  /** Like `get`; undefined also if the key was never requested. */
  peek(name: string): HotKey | undefined {
    return this.#names.get(name)?.peek(this.#space)
  }

  /** The hot key whose bytes stand from `start` to `end` and have this hash. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): HotKey | undefined {
    return this.#names.find(bytes, start, end, hash)?.in(this.#space)
  }
}
