import { absorb, highWord, state } from '../dict/hash-bytes.ts'

/**
 * Two 32-bit hashes of a key's bytes, computed together: one gives the key's position in a table, and both together
 * stand for the key itself.
 *
 * They are the two halves of HalfSipHash-1-3 with 64 bits: `hashBytes` explains this choice and how it works; three
 * more rounds give the second half. Without the seed nobody can choose keys that share a bucket, or two that are
 * mistaken for each other, better than by chance: 2^-64 for any two keys. The seed is a whole number below 2^53.
 *
 * `TallyKernel` computes the same hashes for many keys at once.
 */
export class KeyHasher {
  readonly seed: number
  readonly #k0: number
  readonly #k1: number
  /** The second hash of the key last passed to `hash`. */
  check = 0

  constructor(seed = 0) {
    this.seed = seed
    this.#k0 = seed | 0
    this.#k1 = highWord(seed)
  }

  /**
   * The first hash of the key in `bytes` from `start` to `end`, a signed integer; the second one is then in `check`.
   */
  hash(bytes: Uint8Array, start: number, end: number): number {
    absorb(bytes, start, end, this.#k0, this.#k1, 0xee, 0xee)
    let v0 = state[0]!
    let v1 = state[1]!
    let v2 = state[2]!
    let v3 = state[3]!
    let first = 0
    for (let round = 1; round <= 6; round++) {
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
      if (round === 3) {
        first = v1 ^ v3
        v1 ^= 0xdd
      }
    }
    this.check = v1 ^ v3
    return first
  }
}
