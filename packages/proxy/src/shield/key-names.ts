import { keyName } from '@firebreak/core'

/**
 * The names of keys that were seen lately, found by the keys' bytes: a key that comes again and again costs one hash and
 * one comparison, and no string is made of it.
 *
 * Two places for each hash (FNV-1a), the newer one first; whoever was there longer makes room. A name is only an answer
 * to "what is this key called", so a forgotten one is made again. The bytes to compare with stand in one piece of memory,
 * each place's beside its neighbour's: with ten thousand keys in turn the processor waits for memory, not for us.
 */
export class KeyNames {
  readonly #mask: number
  readonly #hashes: Int32Array
  readonly #lengths: Uint8Array
  readonly #bytes: Uint8Array
  readonly #names: string[]

  /** `size` is a power of two. */
  constructor(size = 32_768) {
    this.#mask = size - 2
    this.#hashes = new Int32Array(size)
    // One more than the length; 0 for a place that nobody has.
    this.#lengths = new Uint8Array(size)
    this.#bytes = new Uint8Array(size * maxKeyBytes)
    this.#names = new Array(size).fill('')
  }

  /** The name of the key from `start` to `end`. */
  of(bytes: Uint8Array, start: number, end: number): string {
    if (end - start > maxKeyBytes) return keyName(bytes.subarray(start, end))
    let hash = 0x811c9dc5 | 0
    for (let index = start; index < end; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193)
    const place = (hash ^ (hash >>> 15)) & this.#mask
    if (this.#hashes[place] === hash && this.#isAt(place, bytes, start, end)) return this.#names[place]!
    const second = place + 1
    if (this.#hashes[second] === hash && this.#isAt(second, bytes, start, end)) return this.#names[second]!
    return this.#add(place, hash, bytes, start, end)
  }

  #isAt(place: number, bytes: Uint8Array, start: number, end: number): boolean {
    const length = end - start
    if (this.#lengths[place] !== length + 1) return false
    const own = this.#bytes
    const from = place * maxKeyBytes
    for (let index = 0; index < length; index++) if (own[from + index] !== bytes[start + index]) return false
    return true
  }

  #add(place: number, hash: number, bytes: Uint8Array, start: number, end: number): string {
    const second = place + 1
    const own = this.#bytes
    const from = place * maxKeyBytes
    own.copyWithin(from + maxKeyBytes, from, from + maxKeyBytes)
    this.#hashes[second] = this.#hashes[place]!
    this.#lengths[second] = this.#lengths[place]!
    this.#names[second] = this.#names[place]!
    const name = keyName(bytes.subarray(start, end))
    for (let index = start; index < end; index++) own[from + index - start] = bytes[index]!
    this.#hashes[place] = hash
    this.#lengths[place] = end - start + 1
    this.#names[place] = name
    return name
  }
}

const maxKeyBytes = 64
