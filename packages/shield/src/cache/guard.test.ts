import { defaultLocalCache, type RateLimitStrategy } from '@firebreak/core'
import { expect, test } from 'vitest'
import { endlessLease, LaneLease } from '../watcher/lease.ts'
import { type Guards, guardOf, type KeyWatcher, lifeOf } from './guard.ts'

const tracked = { aliveUntil: 1300 }

function guards(state: 'live' | 'fallback', lane = new LaneLease()): [KeyWatcher, Guards] {
  const lease = state === 'live' ? tracked : endlessLease
  return [
    { state, lease },
    { leaseMs: 300, lane, fallbackTtlMs: 100 },
  ]
}

test('tracking guards for its lease, and a small maxStalenessMs ends it sooner', () => {
  expect(guardOf(defaultLocalCache, ...guards('live'), 1000)).toEqual({ lease: tracked, maxMs: Infinity })
  const { lease } = guardOf({ ...defaultLocalCache, maxStalenessMs: 50 }, ...guards('live'), 1000)
  expect(lease.aliveUntil).toBe(1050)
  tracked.aliveUntil = 2300
  expect(lease.aliveUntil).toBe(2050)
  tracked.aliveUntil = 1300
  expect(guardOf({ ...defaultLocalCache, maxStalenessMs: 500 }, ...guards('live'), 1000).lease).toBe(tracked)
})

test('if tracking is refused, the lane guards while it is known to be alive, and otherwise the fallback', () => {
  const lane = new LaneLease()
  expect(guardOf(defaultLocalCache, ...guards('fallback', lane), 1000)).toEqual({ lease: endlessLease, maxMs: 100 })
  lane.renew(900, 2300)
  expect(guardOf(defaultLocalCache, ...guards('fallback', lane), 1000)).toEqual({ lease: lane, maxMs: Infinity })
  const strict = guardOf({ ...defaultLocalCache, maxStalenessMs: 300 }, ...guards('fallback', lane), 1000)
  expect(strict.lease.aliveUntil).toBe(1200)
  expect(guardOf(defaultLocalCache, ...guards('fallback', lane), 3200)).toEqual({ lease: endlessLease, maxMs: 100 })
  lane.renew(100, 2300)
  expect(lane.aliveUntil).toBe(3200)
})

test('a value that need not be consistent is guarded only by its time', () => {
  const strategy = { ...defaultLocalCache, consistent: false }
  expect(guardOf(strategy, ...guards('live'), 1000)).toEqual({ lease: endlessLease, maxMs: Infinity })
  expect(guardOf({ ...strategy, maxStalenessMs: 70 }, ...guards('live'), 1000)).toEqual({
    lease: endlessLease,
    maxMs: 70,
  })
  expect(guardOf({ ...defaultLocalCache, maxStalenessMs: 20 }, ...guards('fallback'), 1000).maxMs).toBe(20)
})

test('a reply lives for the shortest time that its strategy, key, guard and the rights of its readers allow', () => {
  const ttlMs = (of: Partial<Parameters<typeof lifeOf>[0]>, state: 'live' | 'fallback' = 'live') =>
    lifeOf({ strategy: defaultLocalCache, pttlMs: -1, rightsMs: undefined, ...of }, ...guards(state), 1000).ttlMs
  const ownMs = defaultLocalCache.expireTime * 1000
  expect(ttlMs({})).toBe(ownMs)
  expect(ttlMs({ pttlMs: 70 })).toBe(70)
  expect(ttlMs({ pttlMs: 0 })).toBe(0)
  expect(ttlMs({ rightsMs: 5000 })).toBe(Math.min(5000, ownMs))
  expect(ttlMs({}, 'fallback')).toBe(100)
})

test('a reply repeated under a limit is guarded only by the rights of its readers', () => {
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1,
    windowMs: 1000,
    onLimit: 'stale',
    scope: 'process',
  }
  const life = (rightsMs?: number) => lifeOf({ strategy, pttlMs: 70, rightsMs }, ...guards('live'), 1000)
  expect(life(5000)).toEqual({ lease: endlessLease, ttlMs: 5000 })
  expect(life()).toEqual({ lease: endlessLease, ttlMs: Infinity })
})
