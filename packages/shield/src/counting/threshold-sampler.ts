/** Threshold sampling: a count below f is sent as f with probability count / f, which keeps every sum unbiased. */
export class ThresholdSampler {
  readonly #random: () => number
  factor = 1
  count = 0
  writes = 0
  bytes = 0

  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  /** Decides about one key's counts; true where they are sent, as `count`, `writes` and `bytes` then say. */
  sample(count: number, writes: number, bytes: number): boolean {
    if (count < this.factor && this.#random() * this.factor >= count) return false
    const scale = count < this.factor ? this.factor / count : 1
    this.count = count * scale
    this.writes = Math.min(this.count, Math.round(writes * scale))
    this.bytes = Math.round(bytes * scale)
    return true
  }
}
