import type { HotKey } from './hot-key.ts'

/**
 * The hot keys of a space by the bytes of their names, found in a buffer without making a string: open addressing, at
 * most a quarter full, so that a key that is not hot costs one look at an array.
 */
export class HotTable {
  #places: (HotKey | undefined)[] = new Array(leastPlaces).fill(undefined)
  #hashes = new Int32Array(leastPlaces)
  readonly #keys = new Map<HotKey, number>()
  #isStale = false

  get size(): number {
    return this.#keys.size
  }

  /** Adds a key whose bytes have this hash. */
  add(hot: HotKey, hash: number): void {
    this.#keys.set(hot, hash)
    if (this.#keys.size * 4 > this.#places.length) this.#isStale = true
    if (!this.#isStale) this.#place(hot, hash)
  }

  remove(hot: HotKey): void {
    if (this.#keys.delete(hot)) this.#isStale = true
  }

  /** The hot key whose bytes stand from `start` to `end` and have this hash. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): HotKey | undefined {
    if (this.#isStale) this.#build()
    const places = this.#places
    const mask = places.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const hot = places[at]
      if (hot === undefined) return undefined
      if (this.#hashes[at] === hash && isSame(hot.bytes, bytes, start, end)) return hot
    }
  }

  // Keys become hot and cool seldom, and then many at once: the table is built anew when it is next looked at.
  #build(): void {
    this.#isStale = false
    const size = Math.max(leastPlaces, 2 ** Math.ceil(Math.log2(this.#keys.size * 4)))
    this.#places = new Array(size).fill(undefined)
    this.#hashes = new Int32Array(size)
    for (const [hot, hash] of this.#keys) this.#place(hot, hash)
  }

  #place(hot: HotKey, hash: number): void {
    const mask = this.#places.length - 1
    let at = hash & mask
    while (this.#places[at] !== undefined) at = (at + 1) & mask
    this.#places[at] = hot
    this.#hashes[at] = hash
  }
}

const leastPlaces = 16

function isSame(own: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (own.length !== end - start) return false
  for (let index = 0; index < own.length; index++) if (own[index] !== bytes[start + index]) return false
  return true
}
