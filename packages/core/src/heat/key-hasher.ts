/**
 * Two 32-bit hashes of a key's bytes, made together: one says where a key stands in a table, both together stand for the
 * key itself.
 *
 * The state is two words of 32 bits. A round takes eight bytes, four into each word, and lets the words change places:
 *
 *     x = (a ^ first four) · p        a' = y ^ (x >>> 15)
 *     y = (b ^ last four) · q         b' = x ^ (y >>> 13)
 *
 * Each round, and what mixes the state at the end, is a bijection of all 64 bits: two keys of one length that differ in
 * eight bytes of a round only never have the same two hashes, others with a probability of 2^-64. The multiplications of
 * a round do not wait for each other, which makes it cheaper than a hash of 32 bits made twice. The seed keeps a
 * stranger who chooses keys from choosing collisions ahead of time; it is no cryptographic promise.
 *
 * `TallyKernel` makes the same hashes of many keys at once.
 */
export class KeyHasher {
  readonly seed: number
  /** The second hash of the key that `hash` was last asked for. */
  check = 0

  constructor(seed = 0) {
    this.seed = seed
  }

  /** The first hash of the key in `bytes` from `start` to `end`, a signed integer; the second one is in `check`. */
  hash(bytes: Uint8Array, start: number, end: number): number {
    let a = this.seed ^ Math.imul(end - start, lengthFactor)
    let b = a ^ other
    let at = start
    for (; at + 8 <= end; at += 8) {
      const x = Math.imul(a ^ wordAt(bytes, at), p)
      const y = Math.imul(b ^ wordAt(bytes, at + 4), q)
      a = y ^ (x >>> 15)
      b = x ^ (y >>> 13)
    }
    if (at < end) {
      const x = Math.imul(a ^ restOf(bytes, at, Math.min(at + 4, end)), p)
      const y = Math.imul(b ^ restOf(bytes, at + 4, end), q)
      a = y ^ (x >>> 15)
      b = x ^ (y >>> 13)
    }
    a = Math.imul(a ^ (a >>> 15) ^ b, lastP)
    b = Math.imul(b ^ (a >>> 13), lastQ)
    a = Math.imul(a ^ (b >>> 16), p)
    this.check = b ^ (a >>> 16)
    return a ^ (a >>> 15)
  }
}

/** The constants of the hash. */
export const hashFactors = {
  lengthFactor: 0x9e3779b1,
  other: 0x2545f491,
  p: 0x5bd1e995,
  q: 0x2c1b3c6d,
  lastP: 0x85ebca6b,
  lastQ: 0xc2b2ae35,
}
const { lengthFactor, other, p, q, lastP, lastQ } = hashFactors

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

/** Up to four bytes as a word, as if zeros followed; how many there are is part of the hash by the key's length. */
function restOf(bytes: Uint8Array, start: number, end: number): number {
  let rest = 0
  for (let at = start; at < end; at++) rest |= bytes[at]! << ((at - start) * 8)
  return rest
}
