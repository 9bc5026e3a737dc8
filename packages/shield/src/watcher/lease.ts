/** Until when a watcher is known to be alive; nothing that it guards is served after that. */
export interface Lease {
  aliveUntil: number
  /** True if the hub's lane holds it, and no watcher of Redis does. */
  readonly isOfLane?: boolean
}

/** The lease of what no watcher guards: only its TTL ends it. */
export const endlessLease: Lease = Object.freeze({ aliveUntil: Number.POSITIVE_INFINITY })

/**
 * A lease that ends sooner than the watcher's own, for a rule with `maxStalenessMs`. A lease starts at the moment up to
 * which everything is known to have been heard, so a lease of that many milliseconds means at most that much staleness.
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

  get isOfLane(): boolean {
    return this.#lease.isOfLane === true
  }
}

/**
 * The lease of what the hub's invalidation lane guards. A heartbeat states when the hub's sources were last known to
 * have seen every write of a Redis; the lane's messages precede it on the same connection, so on its arrival everything
 * written up to then has been heard. Two heartbeats may fail before the lease ends.
 */
export class LaneLease implements Lease {
  readonly isOfLane = true
  aliveUntil = Number.NEGATIVE_INFINITY
  /** How long a heartbeat extends it, from the moment that it states. */
  lengthMs = 0

  /** Everything up to `completeAt`, by our clock, has been heard. */
  renew(completeAt: number, lengthMs: number): void {
    this.lengthMs = lengthMs
    this.aliveUntil = Math.max(this.aliveUntil, completeAt + lengthMs)
  }
}
