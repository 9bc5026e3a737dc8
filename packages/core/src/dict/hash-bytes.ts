/**
 * A 32-bit hash of the bytes from `start` to `end` that nobody can foretell who does not know the seed: HalfSipHash-1-3,
 * a signed integer, so that V8 never boxes it.
 *
 * Strangers choose keys: whoever could choose many that share a bucket would make every look-up walk them all. A hash
 * whose seed only comes in at the beginning does not keep that from happening. (The one that stood here multiplied a word
 * at a time: the top bit of a word reaches no other bit by a multiplication, so two keys that differ in that bit of two
 * words in a row had one hash under every seed.) SipHash was made for hash tables that strangers write to: additions,
 * rotations and xors over a state of four words, a key that all of the state depends on, one round for each word and
 * three at the end, as Linux has it (`hsiphash`). J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
 *
 * The seed is a whole number below 2^53, which is all of the secret.
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  const k1 = highWord(seed)
  let v0 = seed | 0
  let v1 = k1
  let v2 = 0x6c796765 ^ v0
  let v3 = 0x74656462 ^ k1
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
  // The last word, and three rounds without any.
  for (let round = 0; round < 4; round++) {
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
      v2 ^= 0xff
    }
  }
  return v1 ^ v3
}

/** The bits of a seed above the lowest 32. */
export function highWord(seed: number): number {
  return Math.floor(seed / 2 ** 32) | 0
}
