const bitsPerBuyer = 12
const probes = 4

/**
 * A Bloom filter of the users who hold an order: it never misses one, and mistakes about one other user in 150 for one.
 *
 * A process that remembers "sold out" must not say so to a buyer, and cannot keep a million user ids. A user mistaken
 * for a buyer only costs one call to Redis. 12 bits per buyer, 4 probes: the error is (1 − e^(−4/12))⁴ ≈ 0.65 %.
 */
export class BuyersFilter {
  readonly #bits: Uint32Array
  readonly #mask: number
  #isEmpty = true

  /** @param expected how many users will be added; more make it less sharp, never wrong */
  constructor(expected: number) {
    const bits = 2 ** Math.ceil(Math.log2(Math.max(1024, expected * bitsPerBuyer)))
    this.#bits = new Uint32Array(bits / 32)
    this.#mask = bits - 1
  }

  add(userId: string): void {
    this.#isEmpty = false
    let [hash, step] = hashes(userId)
    for (let probe = 0; probe < probes; probe++) {
      const bit = hash & this.#mask
      this.#bits[bit >>> 5]! |= 1 << (bit & 31)
      hash = (hash + step) | 0
      step = (step + probe) | 0
    }
  }

  /** False: certainly no buyer. */
  mayHold(userId: string): boolean {
    if (this.#isEmpty) return false
    let [hash, step] = hashes(userId)
    for (let probe = 0; probe < probes; probe++) {
      const bit = hash & this.#mask
      if ((this.#bits[bit >>> 5]! & (1 << (bit & 31))) === 0) return false
      hash = (hash + step) | 0
      step = (step + probe) | 0
    }
    return true
  }
}

/** Two hashes of one text: where to start, and how far to step (odd, so that every bit can be reached). */
function hashes(text: string): [number, number] {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  // The low bits of a product depend only on low bits: the high ones are folded in, otherwise both hashes would be the
  // same.
  let step = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35)
  step ^= step >>> 16
  return [hash ^ (hash >>> 16), step | 1]
}
