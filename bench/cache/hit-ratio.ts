import { BoundedCache, type ExpireStrategy } from '@firebreak/core'
import type { Trace } from '@firebreak/testkit'

/** The share of a trace's requests, in percent, that a cache of `maxEntries` answers. */
export function hitRatio(trace: Trace, policy: ExpireStrategy, maxEntries: number): number {
  const cache = new BoundedCache<true>({ maxEntries, maxBytes: Number.MAX_SAFE_INTEGER, policy })
  let hits = 0
  for (const id of trace.ids) {
    const key = trace.keys[id]!
    if (cache.get(key)) hits++
    else cache.set(key, true, 1)
  }
  return (hits / trace.ids.length) * 100
}
