import { keyName } from '@firebreak/core'

/**
 * The names of keys that were seen lately, found by the keys' bytes: a key that comes again and again costs one hash and
 * one comparison, and no string is made of it.
 *
 * Two places for each hash (FNV-1a), the newer one first; whoever was there longer makes room. A name is only an answer
 * to "what is this key called", so a forgotten one is made again.
 */
export class KeyNames {
  readonly #mask: number
  readonly #hashes: Int32Array
  readonly #keys: (Uint8Array | undefined)[]
  readonly #names: string[]

  /** `size` is a power of two. */
  constructor(size = 65_536) {
    this.#mask = size - 2
    this.#hashes = new Int32Array(size)
    this.#keys = new Array(size).fill(undefined)
    this.#names = new Array(size).fill('')
  }

  /** The name of the key from `start` to `end`. */
  of(bytes: Uint8Array, start: number, end: number): string {
    if (end - start > maxKeyBytes) return keyName(bytes.subarray(start, end))
    let hash = 0x811c9dc5 | 0
    for (let index = start; index < end; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193)
    const place = (hash ^ (hash >>> 16)) & this.#mask
    if (this.#hashes[place] === hash && isSame(this.#keys[place], bytes, start, end)) return this.#names[place]!
    const second = place + 1
    if (this.#hashes[second] === hash && isSame(this.#keys[second], bytes, start, end)) return this.#names[second]!
    this.#hashes[second] = this.#hashes[place]!
    this.#keys[second] = this.#keys[place]
    this.#names[second] = this.#names[place]!
    const key = Buffer.from(bytes.subarray(start, end))
    const name = keyName(key)
    this.#hashes[place] = hash
    this.#keys[place] = key
    this.#names[place] = name
    return name
  }
}

const maxKeyBytes = 256

function isSame(key: Uint8Array | undefined, bytes: Uint8Array, start: number, end: number): boolean {
  if (key === undefined || key.length !== end - start) return false
  for (let index = 0; index < key.length; index++) if (key[index] !== bytes[start + index]) return false
  return true
}
