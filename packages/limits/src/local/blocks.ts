interface Block {
  until: number
  readonly forMs: number
}

/** Keys that are denied regardless of their limit, each until a time. Bounded: the oldest block is dropped first. */
export class Blocks {
  readonly #blocks = new Map<string, Block>()
  readonly #maxKeys: number

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  get isEmpty(): boolean {
    return this.#blocks.size === 0
  }

  set(key: string, nowMs: number, forMs: number): void {
    this.#blocks.delete(key)
    if (forMs <= 0) return
    if (this.#blocks.size >= this.#maxKeys) {
      for (const [other, { until }] of this.#blocks) {
        this.#blocks.delete(other)
        if (until > nowMs) break
      }
    }
    this.#blocks.set(key, { until: nowMs + forMs, forMs })
  }

  /** How much longer a key is blocked; 0 if it is not. A clock that steps back does not lengthen a block. */
  leftMs(key: string, nowMs: number): number {
    const block = this.#blocks.get(key)
    if (block === undefined) return 0
    if (block.until <= nowMs) {
      this.#blocks.delete(key)
      return 0
    }
    block.until = Math.min(block.until, nowMs + block.forMs)
    return block.until - nowMs
  }

  delete(key: string): void {
    this.#blocks.delete(key)
  }
}
