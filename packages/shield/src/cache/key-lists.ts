import type { HotKey } from './hot-key.ts'

/**
 * Hot keys in no particular order, each of which knows its own position: added, removed and picked at random in
 * constant time.
 */
export class KeptKeys {
  readonly #keys: HotKey[] = []

  get size(): number {
    return this.#keys.length
  }

  at(index: number): HotKey {
    return this.#keys[index]!
  }

  add(hot: HotKey): void {
    if (hot.keptAt >= 0) return
    hot.keptAt = this.#keys.length
    this.#keys.push(hot)
  }

  remove(hot: HotKey): void {
    if (hot.keptAt < 0) return
    const last = this.#keys.pop()!
    if (last !== hot) {
      this.#keys[hot.keptAt] = last
      last.keptAt = hot.keptAt
    }
    hot.keptAt = -1
  }

  /** Every key once; the one that is visited may be removed. */
  *[Symbol.iterator](): Generator<HotKey> {
    for (let index = this.#keys.length - 1; index >= 0; index--) yield this.#keys[index]!
  }
}

/** The keys with counts since they were last taken. */
export class TouchedKeys {
  #keys: HotKey[] = []

  add(hot: HotKey): void {
    this.#keys.push(hot)
  }

  [Symbol.iterator](): Iterator<HotKey> {
    return this.#keys.values()
  }

  take(): HotKey[] {
    const keys = this.#keys
    this.#keys = []
    for (const hot of keys) hot.isTouched = false
    return keys
  }
}
