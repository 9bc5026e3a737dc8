/** Pseudo-random numbers from a seed: mulberry32. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }
}

/** A seed derived from bytes alone, so that an input is always split into the same chunks (FNV-1a). */
export function seedOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

/** The input, split at random positions that depend only on the input; some chunks are single bytes. */
export function chunksOf(input: Buffer): Buffer[] {
  const random = new SeededRandom(seedOf(input))
  const largest = random.pick([1, 3, 16, 200, 4096])
  const chunks: Buffer[] = []
  for (let at = 0; at < input.length; ) {
    const end = Math.min(input.length, at + 1 + random.below(largest))
    chunks.push(input.subarray(at, end))
    at = end
  }
  return chunks
}
