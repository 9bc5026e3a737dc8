import type { StatusPayload } from '@firebreak/core'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const counters = {
  reads: 0,
  writes: 0,
  localHits: 0,
  loads: 0,
  bypasses: 0,
  invalidations: 0,
  flushes: 0,
  limited: 0,
  copyReads: 0,
  droppedReports: 0,
  errors: 0,
}

/** A second of a thousand reads of `k`, and a shield's word on how many of them its cache answered. */
function oneSecond(test: TestCore, localHits: number, state: 'live' | 'connecting' = 'live'): void {
  test.keepReporting(1000, { k: 100 })
  const effect = {
    redisClusterId: 'main',
    key: 'k',
    localHits,
    redisReads: 1000 - localHits,
    bytesSaved: 0,
    limited: 0,
    errors: 0,
  }
  const status: StatusPayload = {
    sentAt: 0,
    epoch: '',
    version: 0,
    isOff: false,
    counters,
    keys: [effect],
    watchers: [{ redisClusterId: 'main', kind: 'tracking', state, detail: '' }],
  }
  test.core.fleet.takeStatus([...test.core.fleet.hosts.all()][0] as never, status)
}

const rule = {
  id: 'r',
  prefix: 'k',
  windowMs: 1000,
  levels: [{ threshold: 500, strategies: ['LocalCache', 'Observe'] }],
}
const strategyOf = (test: TestCore) =>
  [...test.core.delivery.entries()].find(({ key }) => key === 'k')?.strategy.strategy

test('a strategy that brings nothing is rolled back, another one taken, and that is told', async () => {
  const hub = await TestCore.open([rule])
  oneSecond(hub, 0)
  expect(strategyOf(hub)).toBe('LocalCache')
  for (let second = 0; second < 12; second++) oneSecond(hub, 0)
  expect(strategyOf(hub)).toBe('Observe')
  await hub.clock.advanceAsync(2000, 100)
  const events = await hub.store.history({ limit: 100 })
  const rollback = events.find(({ kind }) => kind === 'rollback')
  expect(rollback?.text).toMatch(/^LocalCache is rolled back: it answered only 0\.0 % of \d+ reads; now Observe$/)
})

test('an outage of Redis is no word on a strategy: it is in force when Redis is back', async () => {
  const hub = await TestCore.open([rule])
  for (let second = 0; second < 10; second++) oneSecond(hub, 990)
  for (let second = 0; second < 30; second++) oneSecond(hub, 0, 'connecting')
  for (let second = 0; second < 30; second++) oneSecond(hub, 990)
  expect(strategyOf(hub)).toBe('LocalCache')
  await hub.clock.advanceAsync(2000, 100)
  expect((await hub.store.history({ limit: 100 })).filter(({ kind }) => kind === 'rollback')).toEqual([])
})

test('a strategy that helps stays', async () => {
  const hub = await TestCore.open([rule])
  for (let second = 0; second < 12; second++) oneSecond(hub, 990)
  expect(strategyOf(hub)).toBe('LocalCache')
})
