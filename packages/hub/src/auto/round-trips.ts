/**
 * How long a node lets one wait, and what that says of its load where its CPU may not be asked for.
 *
 * In a queue with one server the time from question to answer is L = L₀ / (1 − ρ), so ρ = 1 − L₀ / L, with L₀ the time on an idle
 * node. L₀ is the least that was seen, which rises by 2 % a sample, so that a network that became slower is not taken for load for ever.
 * L is the median of the last five: one answer that waited behind a slow command, or a pause of our own process, says nothing.
 */
export class RoundTrips {
  #least = Number.POSITIVE_INFINITY
  readonly #last: number[] = []

  add(ms: number): void {
    this.#least = Math.min(ms, this.#least * rise)
    this.#last.push(ms)
    if (this.#last.length > kept) this.#last.shift()
  }

  get leastMs(): number {
    return Number.isFinite(this.#least) ? this.#least : 0
  }

  get medianMs(): number {
    return this.#last.toSorted((a, b) => a - b)[Math.floor(this.#last.length / 2)] ?? 0
  }

  /** The node's utilisation that the queue implies; 0 while it is too short to tell, or too little was seen. */
  get use(): number {
    const ms = this.medianMs
    // Below that a thread that was not scheduled at once explains it as well.
    if (this.#last.length < kept || ms - this.leastMs < leastWaitMs) return 0
    return 1 - this.leastMs / ms
  }
}

const kept = 5
const rise = 1.02
const leastWaitMs = 0.3
