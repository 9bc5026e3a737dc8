import type { Lease } from './lease.ts'

/**
 * The lease of what the hub's invalidation lane guards. A heartbeat says when the hub's sources were last known to have
 * seen every write of a Redis; the lane's messages stand before it on the same connection, so at its arrival all that
 * was written up to then has been heard. Two heartbeats may fail before the lease ends.
 */
export class LaneLease implements Lease {
  aliveUntil = Number.NEGATIVE_INFINITY
  /** How long a heartbeat keeps it, from the moment that it speaks of. */
  lengthMs = 0

  /** Everything up to `completeAt`, by our clock, has been heard. */
  renew(completeAt: number, lengthMs: number): void {
    this.lengthMs = lengthMs
    this.aliveUntil = Math.max(this.aliveUntil, completeAt + lengthMs)
  }
}
