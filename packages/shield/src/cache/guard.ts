import type { LocalCacheStrategy, Strategy } from '@firebreak/core'
import { endlessLease, type LaneLease, type Lease, ShortenedLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'

/** What a reply is served under: a lease, and how long at most. */
export interface Guard {
  readonly lease: Lease
  readonly maxMs: number
}

/** The guards that a Redis has beside a key's watcher, and how long values live where none of them holds. */
export interface Guards {
  readonly leaseMs: number
  readonly lane: LaneLease
  readonly fallbackTtlMs: number
}

/** Who reads a key, and is told of its changes. */
export type KeyWatcher = Pick<TrackingWatcher, 'state' | 'lease'>

/**
 * Who guards a reply that is read now. Tracking where it stands; where it is refused, the hub's lane if its sources see
 * every write; else nobody, and the value lives `fallbackTtlMs`. A strategy that is not `consistent` asks for nobody.
 * `maxStalenessMs` shortens whichever it is.
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
  /** What PTTL said of the key, negative where it does not end. */
  readonly pttlMs: number
  /** How long those who read it are believed to be still allowed to. */
  readonly rightsMs: number | undefined
}

/** What a reply that is read now may be given under, and for how long; a limit gives its last one whatever becomes of the key. */
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
