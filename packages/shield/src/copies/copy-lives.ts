import type { Picture } from './picture.ts'

/** How long a followed copy stays valid without its refresher; a dead refresher leaves nothing older than this. */
export const vouchMs = 1500
/** How long a copy stays after it is no longer valid. */
const outliveMs = 5000
const ownershipMarginMs = 60_000

/** What determines how long a copy lives, besides its picture. */
export interface LifeBounds {
  /** How long a picture that nobody follows stays valid. */
  readonly fallbackTtlMs: number
  /** The longest that a copy may outlive its key. */
  readonly ttlJitterMs: number
  /** True if a copy gets its key's remaining time and is not renewed. */
  readonly hasTtlOfKey?: boolean
  readonly now: number
  /** From 0 to 1. */
  readonly chance: number
}

/**
 * How long the marker, the copy and the mark of ownership live. The marker never outlives the key. The copy outlives
 * its marker by a little and its key by at most `ttlJitterMs`, random so that copies do not expire together, and never
 * its mark.
 */
export function livesOf(
  picture: Picture,
  isFollowed: boolean,
  { fallbackTtlMs, ttlJitterMs, hasTtlOfKey, now, chance }: LifeBounds,
): [markerMs: number, copyMs: number, ownershipMs: number] {
  const keyMs = picture.pttlMs >= 0 ? Math.max(1, picture.pttlMs) : Number.POSITIVE_INFINITY
  const trustedMs = isFollowed ? vouchMs : Math.max(1, Math.floor(fallbackTtlMs - (now - picture.askedAt)))
  const markerMs = Math.min(trustedMs, keyMs)
  const ownMs = hasTtlOfKey && picture.pttlMs >= 0 ? keyMs : Math.min(markerMs + outliveMs, keyMs)
  const copyMs = ownMs + Math.floor(chance * ttlJitterMs)
  return [markerMs, copyMs, copyMs + ownershipMarginMs]
}

/** The longest that a copy lives after it was last written or renewed. */
export function longestLifeMs(ttlJitterMs: number): number {
  return vouchMs + outliveMs + ttlJitterMs
}
