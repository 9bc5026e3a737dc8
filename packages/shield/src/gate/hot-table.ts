/**
 * Hot keys by the bytes of their names, looked up in a buffer without making a string: open addressing, at most a
 * quarter full, so that a key that is not hot costs one array access. A removed key leaves no tombstone: those after it
 * move up if they may, so the table is only rebuilt to grow.
 */
export class HotTable<Key extends { readonly bytes: Uint8Array }> {
  #places: (Key | undefined)[] = new Array(leastPlaces).fill(undefined)
  #hashes = new Int32Array(leastPlaces)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds a key whose bytes have this hash. */
  add(key: Key, hash: number): void {
    this.#size++
    if (this.#size * 4 > this.#places.length) this.#grow()
    this.#place(key, hash)
  }

  remove(key: Key, hash: number): void {
    const places = this.#places
    const hashes = this.#hashes
    const mask = places.length - 1
    let hole = hash & mask
    for (; places[hole] !== key; hole = (hole + 1) & mask) if (places[hole] === undefined) return
    this.#size--
    for (let at = (hole + 1) & mask; places[at] !== undefined; at = (at + 1) & mask) {
      // It may only move up as far as its own place.
      const fromHome = (at - hashes[at]!) & mask
      if (fromHome < ((at - hole) & mask)) continue
      places[hole] = places[at]
      hashes[hole] = hashes[at]!
      hole = at
    }
    places[hole] = undefined
  }

  /** The key whose bytes stand from `start` to `end` and have this hash. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): Key | undefined {
    const places = this.#places
    const mask = places.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const key = places[at]
      if (key === undefined) return undefined
      if (this.#hashes[at] === hash && isSame(key.bytes, bytes, start, end)) return key
    }
  }

  #grow(): void {
    const places = this.#places
    const hashes = this.#hashes
    this.#places = new Array(places.length * 2).fill(undefined)
    this.#hashes = new Int32Array(places.length * 2)
    for (let at = 0; at < places.length; at++) {
      const key = places[at]
      if (key !== undefined) this.#place(key, hashes[at]!)
    }
  }

  #place(key: Key, hash: number): void {
    const mask = this.#places.length - 1
    let at = hash & mask
    while (this.#places[at] !== undefined) at = (at + 1) & mask
    this.#places[at] = key
    this.#hashes[at] = hash
  }
}

const leastPlaces = 16

function isSame(own: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (own.length !== end - start) return false
  for (let index = 0; index < own.length; index++) if (own[index] !== bytes[start + index]) return false
  return true
}
