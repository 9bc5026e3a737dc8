/**
 * How long a node takes to answer, and what that implies about its load if its CPU time cannot be queried.
 *
 * In a queue with one server the time from question to answer is L = L₀ / (1 − ρ), so ρ = 1 − L₀ / L, where L₀ is the
 * time on an idle node. L₀ is the lowest value seen, raised by 2 % per sample, so that a network that became slower is
 * not mistaken for load forever. L is the median of the last five: one answer that waited behind a slow command, or a
 * pause of our own process, says nothing.
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

  /**
   * The node's utilisation that the queue implies; 0 while the queue is too short to tell, or too few samples were
   * seen.
   */
  get use(): number {
    const ms = this.medianMs
    // Below that, scheduling delay of a thread would explain it too.
    if (this.#last.length < kept || ms - this.leastMs < leastWaitMs) return 0
    return 1 - this.leastMs / ms
  }
}

const kept = 5
const rise = 1.02
const leastWaitMs = 0.3
