import { join } from 'node:path'
import { FakeClock, fakeRuntime, type RedisServer, startRedis, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SqliteStore } from '../store/sqlite-store.ts'
import { SharedHubs } from '../testing/shared-hubs.ts'
import { TestCore } from '../testing/test-core.ts'
import { historyDefaults, maxBlockBytes, maxKeptBytes } from './heat-history.ts'
import { blockSteps, stepLengths } from './history-block.ts'
import { choosePeriod, type Period } from './past.ts'
import { type HistoryFound, queryHistory } from './query-history.ts'

const folder = temporaryFolder('history')
const question = { by: 'key', filter: {}, sort: 'accesses', limit: 100, page: 1 } as const
const dayMs = 86_400_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.stop())

function ask({ core, clock }: Pick<TestCore, 'core' | 'clock'>, ms: number, leastMs = 0): Promise<HistoryFound> {
  return queryHistory(core.history, { ...question, period: periodOf({ core, clock }, ms, leastMs) })
}

function periodOf({ core, clock }: Pick<TestCore, 'core' | 'clock'>, ms: number, leastMs: number): Period {
  return choosePeriod(clock.now() - ms, clock.now(), clock.now(), core.history.settings, { leastMs })
}

const accessesOf = ({ rows }: HistoryFound) => Object.fromEntries(rows.map(({ name, accesses }) => [name, accesses]))

test('each second of the hottest keys is kept, and adds up alike at every length of points', async () => {
  const hub = await TestCore.open([{ id: 'r', prefix: 'p', threshold: 300, strategy: 'LocalCache', minHoldMs: 1000 }])
  hub.clock.advance(60_000 - (hub.clock.now() % 60_000))
  hub.keepReporting(30_000, { p1: 50, p2: 7, 'q:1': 3 })
  hub.clock.advance(4000)
  const found = await ask(hub, 60_000)
  expect(accessesOf(found)).toEqual({ p1: 15_000, p2: 2100, 'q%3A1': 900 })
  const [p1] = found.rows
  expect(p1).toMatchObject({ redisClusterId: 'main', services: ['shop'], ruleIds: ['r'], peakPerSecond: 500 })
  expect(p1!.share).toBeCloseTo(15_000 / 18_000, 2)
  // Hot from its first second on, and let go soon after the last.
  expect(p1!.states).toMatch(/^\.*m{29,32}\.*$/)
  expect(p1!.hotMs).toBeGreaterThanOrEqual(29_000)
  expect(p1!.hotMs).toBeLessThanOrEqual(32_000)
  expect(found.totals.accesses).toBe(18_000)
  for (const leastMs of [10_000, 60_000]) {
    const coarse = await ask(hub, 60_000, leastMs)
    expect([leastMs, accessesOf(coarse), coarse.totals]).toEqual([leastMs, accessesOf(found), found.totals])
    expect([leastMs, coarse.rows[0]!.hotMs]).toEqual([leastMs, p1!.hotMs])
    expect([leastMs, coarse.rows[0]!.peakPerSecond]).toEqual([leastMs, 500])
  }
  const by = async (subject: 'prefix' | 'service' | 'node' | 'slot') => {
    const period = periodOf(hub, 60_000, 10_000)
    const { rows } = await queryHistory(hub.core.history, { ...question, by: subject, period })
    return rows.map(({ name }) => name)
  }
  expect(await by('prefix')).toEqual(['p1', 'p2', 'q%3A'])
  expect(await by('service')).toEqual(['shop'])
  expect(await by('node')).toEqual([''])
  expect(await by('slot')).toHaveLength(3)
  await hub.core.close()
})

test('a hub that starts again has its past, and what it was about to write when it ended', async () => {
  const file = join(folder, 'hub.sqlite')
  const clock = new FakeClock()
  clock.advance(600_000 - (clock.now() % 600_000))
  const first = await TestCore.open([], {}, new SqliteStore(file), clock)
  first.keepReporting(25_000, { k: 10 })
  clock.advance(3000)
  await first.core.close()
  const again = { hubId: first.core.options.hubId, runtime: fakeRuntime(2, clock) }
  const second = await TestCore.open([], again, new SqliteStore(file), clock)
  second.keepReporting(5000, { k: 10 })
  clock.advance(3000)
  for (const leastMs of [0, 10_000, 60_000])
    expect([leastMs, accessesOf(await ask(second, 60_000, leastMs))]).toEqual([leastMs, { k: 3000 }])
  await second.core.close()
})

test('what a killed hub has written is there: all but its last ten seconds', async () => {
  const file = join(folder, 'killed.sqlite')
  const clock = new FakeClock()
  clock.advance(600_000 - (clock.now() % 600_000))
  const first = await TestCore.open([], {}, new SqliteStore(file), clock)
  first.keepReporting(45_000, { k: 10 })
  await first.core.stored()
  // Nothing more is written: its store is taken away.
  await first.store.close()
  const second = await TestCore.open([], { runtime: fakeRuntime(2, clock) }, new SqliteStore(file), clock)
  for (const leastMs of [0, 10_000, 60_000]) {
    const { k } = accessesOf(await ask(second, 60_000, leastMs))
    expect(k).toBeGreaterThanOrEqual(3000)
  }
  await second.core.close()
})

test('hubs that share a store each add what their own sensors saw, and both are asked for the sum', async () => {
  const hubs = await SharedHubs.open(server.url, 2, [
    { id: 'r', prefix: 'hot', threshold: 100, strategy: 'LocalCache' },
  ])
  await hubs.advance(10_000 - (hubs.clock.now() % 10_000))
  for (let step = 0; step < 20; step++) {
    hubs.report(0, { 'hot-1': 30, 'hot-2': 1 })
    hubs.report(1, { 'hot-1': 20 })
    await hubs.advance(100)
  }
  await hubs.advance(13_000)
  for (const core of hubs.cores) await core.stored()
  for (const core of hubs.cores) {
    const found = await ask({ core, clock: hubs.clock }, 20_000)
    expect(accessesOf(found)).toEqual({ 'hot-1': 1000, 'hot-2': 20 })
    // Both have noted that it was hot: it was so once.
    expect(found.rows[0]!.hotMs).toBeLessThanOrEqual(15_000)
  }
  await hubs.close()
}, 30_000)

test('a day of history takes no more than it may, and what is too old goes', async () => {
  // The bound itself: blocks of a day, each as large as it may be.
  for (const maxBytesPerDay of [8 << 20, 64 << 20]) {
    const settings = { ...historyDefaults, maxBytesPerDay }
    const perDay = stepLengths.map((stepMs) => (dayMs / (stepMs * blockSteps)) * maxBlockBytes(settings, stepMs))
    expect(perDay.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(maxBytesPerDay)
  }
  // 150 keys with long names, rising and falling: more than fits.
  const history = { maxBytesPerDay: 8 << 20, keepMs: { second: 60_000, tenSeconds: 120_000, minute: 300_000 } }
  const hub = await TestCore.open([], { history })
  hub.clock.advance(600_000 - (hub.clock.now() % 600_000))
  for (let second = 0; second < 200; second++) {
    const counts = Array.from({ length: 150 }, (_, n) => [
      `${'long-name-'.repeat(8)}${n}`,
      1 + ((second * n * 7919) % 9973),
    ])
    hub.report(Object.fromEntries(counts))
    hub.clock.advance(1000)
  }
  await hub.core.stored()
  const { cost } = await hub.core.history.view()
  expect(cost.bytesPerDay).toBeGreaterThan(1 << 20)
  expect(cost.bytesPerDay).toBeLessThanOrEqual(8 << 20)
  expect(cost.maxKeptBytes).toBe(maxKeptBytes(history))
  expect(cost.keptBytes).toBeLessThanOrEqual(cost.maxKeptBytes)
  const now = hub.clock.now()
  const kept = await hub.store.blocks(1000, 0, now)
  expect(kept.length).toBeGreaterThan(3)
  // Of the last minute, and of the minute that passes between two trims.
  expect(Math.min(...kept.map(({ at }) => at))).toBeGreaterThanOrEqual(now - 60_000 - 80_000)
  // The keys that did not fit are in the totals.
  const { totals, rows } = await ask(hub, 50_000)
  const known = rows.reduce((sum, { accesses }) => sum + accesses, 0)
  expect(rows.length).toBeLessThan(150)
  expect(totals.accesses).toBeGreaterThan(known)
  await hub.core.close()
})
