import { isFullRun, loadTrace, type Trace, traceNames, zipfTrace } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { ExpireStrategy } from '../strategy/strategy.ts'
import { BoundedCache } from './bounded-cache.ts'

/** The share of a trace's requests, in percent, that a cache for this share of its keys answers. */
function hitRatio(trace: Trace, policy: ExpireStrategy, share: number): number {
  const maxEntries = Math.max(1, Math.round(trace.keys.length * share))
  const cache = new BoundedCache<true>({ maxEntries, maxBytes: Number.MAX_SAFE_INTEGER, policy })
  let hits = 0
  for (const id of trace.ids) {
    const key = trace.keys[id]!
    if (cache.get(key)) hits++
    else cache.set(key, true, 1)
  }
  return (hits / trace.ids.length) * 100
}

/** Keys that are read a few times in a burst and never again, among some that stay: what LRU is good at. */
function burstTrace(): Trace {
  const ids: number[] = []
  const keys = Array.from({ length: 20_000 }, (_, index) => `key:${index}`)
  for (let first = 0; first + 100 < keys.length; first++) {
    ids.push(first)
    for (let back = 1; back <= 64; back *= 4) if (first >= back) ids.push(first - back)
    ids.push(first % 50)
  }
  return { name: 'bursts', isGenerated: true, keys, ids: Uint32Array.from(ids) }
}

const traces = [zipfTrace(100_000, 20_000, 0.9), zipfTrace(100_000, 20_000, 0.7), burstTrace()]

test('S3-FIFO is never more than 2 points under LRU, and above it on average', () => {
  const replayed = [...traces, ...traceNames().map(loadTrace)]
  const shares = isFullRun ? [0.003, 0.01, 0.05, 0.1] : [0.01]
  const differences = shares.map((share) =>
    replayed.map((trace) => {
      const difference = hitRatio(trace, 'S3-FIFO', share) - hitRatio(trace, 'LRU', share)
      expect(difference, `${trace.name} at ${share * 100} %`).toBeGreaterThan(-2)
      return difference
    }),
  )
  for (const ofShare of differences) expect(ofShare.reduce((sum, value) => sum + value, 0)).toBeGreaterThan(0)
})
