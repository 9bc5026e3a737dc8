import { encodeBinaryReport, type HistoryEvent, type Report } from '@firebreak/core'
import { FakeClock, fakeRuntime, scale, waitFor } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import type { HubCoreOptions } from '../hub-options.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { TestCore } from '../testing/test-core.ts'
import type { ThreadedIntake } from './threaded-intake.ts'

const rules = [
  { id: 'high', prefix: 'k', threshold: 400, windowMs: 1000, minHoldMs: 300 },
  { id: 'writes', prefix: 'w', threshold: 60, measure: 'writes', minHoldMs: 300 },
  { id: 'share', prefix: 's', share: 0.003, shareMinimum: 20, shareOf: 'node', minHoldMs: 300 },
]
const hubs: TestCore[] = []

afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.core.close()
})

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

async function open(ingestThreads: number, options: HubCoreOptions = {}): Promise<TestCore> {
  const clock = new FakeClock()
  const runtime = { ...fakeRuntime(7, clock), random: seeded(7) }
  const hub = await TestCore.open(rules, { runtime, ingestThreads, ...options }, new MemoryStore(), clock)
  hubs.push(hub)
  return hub
}

/** Waits until all that was given to the hub has had its turn. */
const settled = (hub: TestCore) => hub.core.intake.inTurn(() => {})

/** One host's counts of an interval: a crowd, keys that come and go around their thresholds, and some of every rule. */
function countsAt(random: () => number, tick: number): Record<string, number | { count: number; writes: number }> {
  const counts: Record<string, number | { count: number; writes: number }> = {}
  for (let nth = 0; nth < 150; nth++) counts[`crowd-${Math.floor(random() ** 2 * 4000)}`] = 1 + Math.floor(random() * 4)
  for (let key = 0; key < 40; key++) {
    // Each key rises and falls at its own pace, to between 0.2 and 1.8 thresholds over the four hosts.
    const level = 1 + 0.8 * Math.sin((tick + key * 7) / (6 + (key % 9)))
    const count = Math.round((400 / 10 / 4) * level * (0.5 + random()))
    if (count > 0) counts[`k${key}`] = count
  }
  // Keys of no rule that fill the list of the hottest, so that these below, at 160 in a window, are only counted.
  for (let key = 0; key < 250; key++) counts[`x${key}`] = 6
  for (let key = 0; key < 20; key++) counts[`k-low-${key}`] = 3 + Math.floor(random() * 3)
  for (let key = 0; key < 10; key++) counts[`w${key}`] = { count: 3, writes: Math.floor(random() * 4) }
  counts[`s${tick % 3}`] = 20 + Math.floor(random() * 30)
  return counts
}

/** Plays the same thirty seconds to a hub; everything that it decided, in order. */
async function play(hub: TestCore, isPatient: boolean): Promise<HistoryEvent[]> {
  const random = seeded(3)
  for (let tick = 0; tick < scale(110, 600); tick++) {
    for (let host = 0; host < 4; host++) {
      hub.report(countsAt(random, tick), {
        hostId: `h${host}`,
        instanceId: `i${host}`,
        serviceId: host < 3 ? 'shop' : 'web',
      })
      hub.clock.advance(25)
    }
    if (tick === 40) {
      const instance = hub.core.fleet.hosts.find('shop', 'h0', 'i0', hub.clock.now())!
      hub.core.keys.takeClaim(instance, { redisClusterId: 'main', key: 'k-claimed', ruleId: 'high', heat: 500 })
    }
    if (tick === 60) {
      // While much is under way. Well below what was near by the old one: what was only counted is hot from the next report on.
      const [level] = hub.core.rule('high')!.levels
      void hub.core.putRule({ ...hub.core.rule('high')!, levels: [{ ...level!, enter: 120, exit: 84 }] }, 'test')
      for (let turn = 0; turn < 10; turn++) await undefined
    }
    // Sometimes the threads are given time, sometimes much is under way.
    if (isPatient && tick % 10 === 0) await settled(hub)
  }
  hub.clock.advance(1000)
  await settled(hub)
  await hub.core.stored()
  return (await hub.store.history({ limit: 100_000 })).toReversed()
}

test('threads decide what one thread decides: the same keys, at the same times, for the same reasons', async () => {
  const single = await open(0)
  const alone = await play(single, false)
  expect(alone.filter(({ kind }) => kind === 'hot').length).toBeGreaterThan(50)
  expect(alone.filter(({ kind }) => kind === 'cooled').length).toBeGreaterThan(30)
  for (const ruleId of ['high', 'writes', 'share']) {
    expect(alone.some((event) => event.ruleId === ruleId && event.kind === 'hot')).toBe(true)
  }
  for (const [threads, isPatient] of [
    [1, true],
    [2, false],
  ] as const) {
    const hub = await open(threads)
    expect(await play(hub, isPatient)).toEqual(alone)
    // What is only shown comes with the answer to the last sweep.
    const slots = (core: TestCore) => core.core.keys.slots.busiest(core.clock.now(), 20_000)
    await waitFor(() => JSON.stringify(slots(hub)) === JSON.stringify(slots(single)))
  }
})

test('a thread that ends is replaced, its hub says so, and no hot key is lost with it', async () => {
  const hub = await open(2)
  const feed = () => hub.report(Object.fromEntries(Array.from({ length: 20 }, (_, key) => [`k${key}`, 60])))
  for (let tick = 0; tick < 12; tick++) {
    feed()
    hub.clock.advance(100)
  }
  await settled(hub)
  expect(hub.core.delivery.size).toBe(20)
  const { threads } = (hub.core.intake as ThreadedIntake).counts
  await threads.terminate(0)
  await waitFor(() => hub.core.alarms.list().some(({ id }) => id === 'ingest-thread:1'))
  for (let tick = 0; tick < 12; tick++) {
    feed()
    await settled(hub)
    hub.clock.advance(100)
  }
  expect((await hub.kinds()).filter((kind) => kind === 'cooled')).toEqual([])
  expect(hub.core.delivery.size).toBe(20)
  // It ends again at once: now nobody counts its keys for a while, and nobody waits for it.
  await threads.terminate(0)
  feed()
  await settled(hub)
  hub.clock.advance(1000)
  // New keys of either thread are found.
  for (let tick = 0; tick < 12; tick++) {
    hub.report(Object.fromEntries(Array.from({ length: 20 }, (_, key) => [`knew${key}`, 60])))
    hub.clock.advance(100)
  }
  await settled(hub)
  expect(Array.from({ length: 20 }, (_, key) => hub.phase(`knew${key}`))).toEqual(Array(20).fill('hot'))
  hub.clock.advance(61_000)
  await settled(hub)
  expect(hub.core.alarms.list().map(({ id }) => id)).not.toContain('ingest-thread:1')
})

test('more reports than the threads can take are refused by cause, not kept without end', async () => {
  const hub = await open(1, { maxBacklogBytes: 20_000 })
  const now = hub.clock.now()
  const entries = Array.from({ length: 1000 }, (_, nth) => ({
    key: `k${nth}`,
    count: 1,
    writes: 0,
    bytes: 0,
  }))
  const report: Report = {
    collectTs: now,
    sendTs: now,
    serviceId: 'shop',
    hostId: 'h',
    instanceId: 'i',
    sections: [{ redisClusterId: 'main', entries }],
  }
  const bytes = encodeBinaryReport(report)
  for (let sequence = 1; sequence <= 9; sequence++) hub.core.collector.collectBinary(bytes, 0, sequence)
  const { overload } = hub.core.collector.refused
  expect(overload).toBeGreaterThan(0)
  expect(overload).toBeLessThan(8)
  await settled(hub)
  hub.core.collector.collectBinary(bytes, 0, 10)
  expect(hub.core.collector.refused).toEqual({ overload })
  await settled(hub)
  expect(hub.core.engine.size).toBe(1000)
})
