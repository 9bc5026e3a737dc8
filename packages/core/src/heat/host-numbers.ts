/** How many hosts can be told apart, and for how long. */
export interface HostNumbersOptions {
  /** Hosts at one time. @default 65536 */
  readonly maxHosts?: number
  /** A host that was silent this long may lose its number to another; longer than any window. @default 3600000 */
  readonly idleMs?: number
}

/** Small numbers for hosts, so that a key's top hosts are kept without their names. */
export class HostNumbers {
  readonly #maxHosts: number
  readonly #idleMs: number
  readonly #numbers = new Map<string, number>()
  readonly #names: string[] = []
  readonly #seenMs: number[] = []
  #nextSearchMs = 0

  constructor(options: HostNumbersOptions = {}) {
    const { maxHosts = 65_536, idleMs = 3_600_000 } = options
    this.#maxHosts = maxHosts
    this.#idleMs = idleMs
  }

  get size(): number {
    return this.#numbers.size
  }

  /** The number of a host that just reported; -1 where all are taken. */
  numberOf(name: string, nowMs: number): number {
    const number = this.#numbers.get(name) ?? this.#give(name, nowMs)
    if (number >= 0) this.#seenMs[number] = nowMs
    return number
  }

  /** The host's name; undefined where the number was never given. */
  nameOf(number: number): string | undefined {
    return this.#names[number]
  }

  #give(name: string, nowMs: number): number {
    const number = this.#names.length < this.#maxHosts ? this.#names.length : this.#reuse(nowMs)
    if (number < 0) return -1
    this.#numbers.set(name, number)
    this.#names[number] = name
    return number
  }

  #reuse(nowMs: number): number {
    // One search over all hosts a second: while all are taken, every report of a new host comes by here.
    if (nowMs < this.#nextSearchMs) return -1
    let oldest = 0
    for (let number = 1; number < this.#seenMs.length; number++) {
      if (this.#seenMs[number]! < this.#seenMs[oldest]!) oldest = number
    }
    if (nowMs - this.#seenMs[oldest]! < this.#idleMs) {
      this.#nextSearchMs = nowMs + 1000
      return -1
    }
    this.#numbers.delete(this.#names[oldest]!)
    return oldest
  }
}
