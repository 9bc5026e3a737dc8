import type { Lease } from './lease.ts'

/**
 * A lease that ends sooner than the watcher's own, for a rule with `maxStalenessMs`. A lease runs from the moment at
 * which everything was known to have been heard, so a lease of that many milliseconds is that much staleness at most.
 */
export class ShortenedLease implements Lease {
  readonly #lease: Lease
  readonly #byMs: number

  constructor(lease: Lease, byMs: number) {
    this.#lease = lease
    this.#byMs = byMs
  }

  get aliveUntil(): number {
    return this.#lease.aliveUntil - this.#byMs
  }
}
