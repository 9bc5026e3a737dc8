/**
 * A 32-bit hash of the bytes from `start` to `end`, four at a time; a signed integer, so that V8 never boxes it.
 *
 * Each round is a bijection of the state for a given word, and of the word for a given state: two keys that differ in
 * one word never collide before the last mixing. The seed keeps a stranger who chooses keys from choosing collisions
 * ahead of time; it is no cryptographic promise.
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  let hash = seed ^ Math.imul(end - start, 0x9e3779b1)
  let at = start
  for (; at + 4 <= end; at += 4) {
    const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    hash = Math.imul(hash ^ word, 0x5bd1e995)
    hash ^= hash >>> 15
  }
  for (; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
