import type { HotKey } from './hot-key.ts'

/**
 * The hub's lane told of a change, perhaps with the new value. A carried value may be older than what was read since, so
 * it is served only where the strategy lets values be old; what is consistent is dropped and read again.
 */
export function laneChanged(hot: HotKey, value: Uint8Array | undefined, ttlMs = Number.POSITIVE_INFINITY): void {
  const { strategy } = hot.handling
  if (value === undefined || strategy.strategy !== 'LocalCache' || strategy.consistent) hot.drop()
  else hot.renew(value, Math.min(strategy.expireTime * 1000, strategy.maxStalenessMs ?? ttlMs, ttlMs))
}
