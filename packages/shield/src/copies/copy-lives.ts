import type { Picture } from './picture.ts'

/** How long a followed copy is vouched for without its refresher; a dead one leaves nothing older than this behind. */
export const vouchMs = 1500
/** A copy that nobody vouches for any more stays for as long. */
const outliveMs = 5000
const ownershipMarginMs = 60_000

/** What decides how long a copy lives, beside its picture. */
export interface LifeBounds {
  /** How long a picture is vouched for that nobody follows. */
  readonly fallbackTtlMs: number
  /** The longest that a copy may outlive its key. */
  readonly ttlJitterMs: number
  readonly now: number
  /** From 0 to 1. */
  readonly chance: number
}

/**
 * How long the marker, the copy and the mark of ownership live. The marker never outlives the key. The copy outlives its
 * marker by a little and its key by `ttlJitterMs` at most, random so that copies do not end together, and never its mark.
 */
export function livesOf(
  picture: Picture,
  isFollowed: boolean,
  { fallbackTtlMs, ttlJitterMs, now, chance }: LifeBounds,
): [markerMs: number, copyMs: number, ownershipMs: number] {
  const keyMs = picture.pttlMs >= 0 ? Math.max(1, picture.pttlMs) : Number.POSITIVE_INFINITY
  const trustedMs = isFollowed ? vouchMs : Math.max(1, Math.floor(fallbackTtlMs - (now - picture.askedAt)))
  const markerMs = Math.min(trustedMs, keyMs)
  const copyMs = Math.min(markerMs + outliveMs, keyMs) + Math.floor(chance * ttlJitterMs)
  return [markerMs, copyMs, copyMs + ownershipMarginMs]
}

/** The longest that a copy lives after it was last written or renewed. */
export function longestLifeMs(ttlJitterMs: number): number {
  return vouchMs + outliveMs + ttlJitterMs
}
