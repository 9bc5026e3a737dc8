/**
 * A 32-bit hash of the bytes from `start` to `end` that cannot be predicted without the seed: HalfSipHash-1-3, as a
 * signed integer so that V8 never boxes it.
 *
 * Outsiders choose the keys: anyone who could choose many that share a bucket would make every look-up walk them all. A
 * hash whose seed is only mixed in at the start does not prevent that. (An earlier version multiplied a word at a time:
 * the top bit of a word reaches no other bit through a multiplication, so two keys that differ in that bit of two
 * consecutive words had the same hash under every seed.) SipHash was designed for hash tables that untrusted users
 * write to: additions, rotations and xors over a state of four words that depends on the key throughout, one round for
 * each word and three at the end, as in Linux (`hsiphash`). J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast
 * short-input PRF", 2012.
 *
 * The seed is a whole number below 2^53 and is the entire secret.
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  absorb(bytes, start, end, seed | 0, highWord(seed), 0, 0xff)
  let v0 = state[0]!
  let v1 = state[1]!
  let v2 = state[2]!
  let v3 = state[3]!
  for (let round = 0; round < 3; round++) {
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
  }
  return v1 ^ v3
}

/** The four words of HalfSipHash after `absorb`. */
export const state: Int32Array = new Int32Array(4)

/**
 * Absorbs the bytes from `start` to `end` into `state`, under the key `k0`, `k1`. The final rounds remain: three for a
 * hash of 32 bits (`opening` 0, `closing` 0xff), six for one of 64 (both 0xee).
 */
export function absorb(
  bytes: Uint8Array,
  start: number,
  end: number,
  k0: number,
  k1: number,
  opening: number,
  closing: number,
): void {
  let v0 = k0
  let v1 = k1 ^ opening
  let v2 = 0x6c796765 ^ k0
  let v3 = 0x74656462 ^ k1
  let at = start
  let isLast = false
  do {
    let word = (end - start) << 24
    isLast = at + 4 > end
    if (isLast) for (let shift = 0; at < end; at++, shift += 8) word |= bytes[at]! << shift
    else word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    at += 4
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
  } while (!isLast)
  state[0] = v0
  state[1] = v1
  state[2] = v2 ^ closing
  state[3] = v3
}

/** The bits of a seed above the lowest 32. */
export function highWord(seed: number): number {
  return Math.floor(seed / 2 ** 32) | 0
}
