import { highWord } from '../dict/hash-bytes.ts'

/**
 * Two 32-bit hashes of a key's bytes, made together: one says where a key stands in a table, both together stand for the
 * key itself.
 *
 * They are the two halves of HalfSipHash-1-3 with 64 bits: `hashBytes` says why this hash, and how it works; here the
 * state is told apart at its beginning, and three more rounds make the second half. Nobody who does not know the seed can
 * choose keys that share a bucket, or two that are taken for each other, any better than by chance: 2^-64 for two keys,
 * whatever they are. The seed is a whole number below 2^53.
 *
 * `TallyKernel` makes the same hashes of many keys at once.
 */
export class KeyHasher {
  readonly seed: number
  readonly #k0: number
  readonly #k1: number
  /** The second hash of the key that `hash` was last asked for. */
  check = 0

  constructor(seed = 0) {
    this.seed = seed
    this.#k0 = seed | 0
    this.#k1 = highWord(seed)
  }

  /** The first hash of the key in `bytes` from `start` to `end`, a signed integer; the second one is in `check`. */
  hash(bytes: Uint8Array, start: number, end: number): number {
    let v0 = this.#k0
    let v1 = this.#k1 ^ 0xee
    let v2 = 0x6c796765 ^ this.#k0
    let v3 = 0x74656462 ^ this.#k1
    let at = start
    let word = 0
    for (; at + 4 <= end; at += 4) {
      word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    word = (end - start) << 24
    for (let shift = 0; at < end; at++, shift += 8) word |= bytes[at]! << shift
    v3 ^= word
    let first = 0
    // The last word, three rounds for the first hash, three for the second.
    for (let round = 0; round < 7; round++) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      if (round === 0) {
        v0 ^= word
        v2 ^= 0xee
      } else if (round === 3) {
        first = v1 ^ v3
        v1 ^= 0xdd
      }
    }
    this.check = v1 ^ v3
    return first
  }
}
