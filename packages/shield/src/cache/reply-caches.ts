import { BoundedCache, type LocalCacheStrategy } from '@firebreak/core'
import type { HotKey } from './hot-key.ts'

/** How long a key's reads bypass the cache after its replies alone exceeded the whole cache. */
const tooLargeBypassMs = 1000

/** The caches of a cluster, one for each set of bounds that a strategy names; keys under the same bounds share one. */
export class ReplyCaches {
  readonly #caches = new Map<string, BoundedCache<HotKey>>()

  /** Counts a key's replies against its strategy's bounds, which may evict other keys. */
  kept(hot: HotKey, now: number): void {
    const { strategy } = hot.handling
    if (strategy.strategy !== 'LocalCache') return
    const cache = this.#cacheOf(strategy)
    if (hot.cache !== undefined && hot.cache !== cache) hot.cache.delete(hot.cacheId)
    hot.cache = cache
    if (cache.set(hot.cacheId, hot, hot.byteCount)) {
      hot.cacheSlot = cache.slotOf(hot.cacheId)!
      return
    }
    if (!hot.evict()) hot.bypassUntil = now + tooLargeBypassMs
  }

  get size(): number {
    let size = 0
    for (const cache of this.#caches.values()) size += cache.size
    return size
  }

  get bytes(): number {
    let bytes = 0
    for (const cache of this.#caches.values()) bytes += cache.bytes
    return bytes
  }

  #cacheOf({ cacheSize, maxBytes, expireStrategy }: LocalCacheStrategy): BoundedCache<HotKey> {
    const id = `${cacheSize} ${maxBytes} ${expireStrategy}`
    let cache = this.#caches.get(id)
    if (cache === undefined) {
      cache = new BoundedCache<HotKey>({
        maxEntries: cacheSize,
        maxBytes,
        policy: expireStrategy,
        onEvict: (_, evicted) => void evicted.evict(),
      })
      this.#caches.set(id, cache)
    }
    return cache
  }
}
