import type { LocalCacheStrategy, Strategy } from '@firebreak/core'
import { endlessLease, type LaneLease, type Lease, ShortenedLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'

/** The conditions under which a reply may be served: a lease, and a maximum time. */
export interface Guard {
  readonly lease: Lease
  readonly maxMs: number
}

/** A Redis' guards other than a key's watcher, and how long values live without any. */
export interface Guards {
  readonly leaseMs: number
  readonly lane: LaneLease
  readonly fallbackTtlMs: number
}

/** Reads a key and is notified of its changes. */
export type KeyWatcher = Pick<TrackingWatcher, 'state' | 'lease'>

/**
 * Chooses the guard of a reply that is being read now: tracking if it works; if it is refused, the hub's lane, provided
 * that its sources see every write; otherwise none, and the value lives for `fallbackTtlMs`. A strategy that is not
 * `consistent` needs no guard. `maxStalenessMs` shortens any of them.
 */
export function guardOf(strategy: LocalCacheStrategy, watcher: KeyWatcher, guards: Guards, now: number): Guard {
  const { leaseMs, lane, fallbackTtlMs } = guards
  const { consistent, maxStalenessMs = Number.POSITIVE_INFINITY } = strategy
  if (!consistent) return { lease: endlessLease, maxMs: maxStalenessMs }
  if (watcher.state !== 'fallback') return shortened(watcher.lease, leaseMs, maxStalenessMs)
  if (now < lane.aliveUntil) return shortened(lane, lane.lengthMs, maxStalenessMs)
  return { lease: endlessLease, maxMs: Math.min(fallbackTtlMs, maxStalenessMs) }
}

/** What bounds a reply's life beside its guard. */
export interface ReplyBounds {
  readonly strategy: Strategy
  /** The key's PTTL, negative if it does not expire. */
  readonly pttlMs: number
  /** How long its readers are assumed to keep their permission. */
  readonly rightsMs: number | undefined
}

/**
 * Under which guard, and for how long, a reply that is being read now may be served; a limit serves its last one
 * whatever happens to the key.
 */
export function lifeOf(
  { strategy, pttlMs, rightsMs = Number.POSITIVE_INFINITY }: ReplyBounds,
  watcher: KeyWatcher,
  guards: Guards,
  now: number,
): { lease: Lease; ttlMs: number } {
  if (strategy.strategy !== 'LocalCache') return { lease: endlessLease, ttlMs: rightsMs }
  const { lease, maxMs } = guardOf(strategy, watcher, guards, now)
  const ownMs = pttlMs >= 0 ? pttlMs : Number.POSITIVE_INFINITY
  return { lease, ttlMs: Math.min(strategy.expireTime * 1000, ownMs, maxMs, rightsMs) }
}

function shortened(lease: Lease, lengthMs: number, maxStalenessMs: number): Guard {
  const isShorter = maxStalenessMs < lengthMs
  return {
    lease: isShorter ? new ShortenedLease(lease, lengthMs - maxStalenessMs) : lease,
    maxMs: Number.POSITIVE_INFINITY,
  }
}
