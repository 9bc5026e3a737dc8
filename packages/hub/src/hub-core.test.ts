import { parseRule } from '@firebreak/core/rules'
import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { MemoryStore } from './store/memory-store.ts'
import { TestCore } from './testing/test-core.ts'

const rule = { id: 'r', prefix: 'k', threshold: 1000, minHoldMs: 1000 }
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

test('hot keys survive a restart, and are let go when nobody touches them any more', async () => {
  const clock = new FakeClock()
  const store = new MemoryStore()
  const first = await TestCore.open([rule], {}, store, clock)
  first.report({ k1: 2000, k2: 2000 })
  const { epoch, version } = first.core.delivery
  // Killed, not closed: only what was written counts.
  await first.core.stored()
  clock.advance(500)
  const second = await TestCore.open([], {}, store, clock)
  const { snapshot } = second.core.delivery.join('shop', { onDelta() {} })
  expect(snapshot.entries.map(({ key }) => key)).toEqual(['k1', 'k2'])
  expect(snapshot.epoch).toBe(epoch)
  expect(snapshot.version).toBeGreaterThan(version)
  expect(second.core.rules().rules.map(({ id }) => id)).toEqual(['r'])
  second.keepReporting(8000, { k1: 200 })
  expect([second.entry('k1') !== undefined, second.entry('k2') !== undefined]).toEqual([true, false])
})

test('entries that have lapsed meanwhile, or whose rule is gone, are not restored', async () => {
  const clock = new FakeClock()
  const store = new MemoryStore()
  const first = await TestCore.open([rule, { ...rule, id: 'gone', prefix: 'g' }], { entryTtlMs: 3000 }, store, clock)
  first.report({ k1: 2000, g1: 2000 })
  await first.core.stored()
  await store.deleteRule('gone')
  const soon = await TestCore.open([], { entryTtlMs: 3000 }, store, clock)
  expect(soon.core.delivery.size).toBe(1)
  await soon.core.stored()
  clock.step(6000)
  const late = await TestCore.open([], {}, store, clock)
  expect(late.core.delivery.size).toBe(0)
  await late.core.stored()
  expect((await store.load()).entries).toEqual([])
})

test('the switch survives a restart', async () => {
  const store = new MemoryStore()
  const first = await TestCore.open([rule], {}, store)
  await first.core.setOff(true, 'ann')
  const second = await TestCore.open([], {}, store)
  expect(second.core.delivery.snapshot('shop').isOff).toBe(true)
  expect(second.core.views().overview()).toMatchObject({ isOff: true })
})

test('a store that fails raises an alarm, decisions go on, and the alarm ends with the trouble', async () => {
  const store = new MemoryStore()
  const hub = await TestCore.open([rule], {}, store)
  const append = store.appendHistory.bind(store)
  store.appendHistory = () => Promise.reject(new Error('disk full'))
  hub.report({ k1: 2000 })
  expect(hub.entry('k1')).toBeDefined()
  // Off the way of the decision: in a turn of its own.
  await hub.clock.advanceAsync(10)
  expect(hub.core.views().overview()).toMatchObject({
    isSafe: false,
    verdict: 'Not safe: the memory store failed: disk full.',
  })
  store.appendHistory = append
  hub.report({ k2: 2000 })
  hub.clock.advance(1000)
  await hub.core.stored()
  expect(hub.core.alarms.list()).toEqual([])
  const hot = (await store.history({ limit: 10 })).filter(({ kind }) => kind === 'hot')
  expect(hot.map(({ key }) => key)).toEqual(['k2', 'k1'])
})

test('statuses become traffic, effects and watchers', async () => {
  const hub = await TestCore.open([{ ...rule, minHoldMs: 60_000 }])
  const instance = hub.core.fleet.hosts.find('shop', 'h', 'i', hub.clock.now())!
  const { epoch } = hub.core.delivery
  hub.report({ k1: 2000 }, { instanceId: 'i', hostId: 'h' })
  for (let second = 0; second < 10; second++) {
    hub.clock.advance(1000)
    hub.report({ k1: 1500 }, { instanceId: 'i', hostId: 'h' })
    hub.core.fleet.takeStatus(instance, {
      sentAt: hub.clock.now(),
      epoch,
      version: 7,
      isOff: false,
      counters: { ...counters, reads: 1000, writes: 50, localHits: 900, copyReads: 40, limited: 10 },
      keys: [
        {
          redisClusterId: 'main',
          key: 'k1',
          localHits: 900,
          redisReads: 5,
          bytesSaved: 100,
          readMs: 0.5,
          limited: 0,
          combined: 30,
          errors: 0,
        },
      ],
      watchers: [{ redisClusterId: 'main', kind: 'tracking', state: 'expired', detail: 'no answer' }],
    })
  }
  hub.clock.advance(1000)
  const { rate, traffic, keys, alarms } = hub.core.views().overview()
  expect(rate).toMatchObject({ redis: 50, local: 900, copies: 40, limited: 10, writes: 50 })
  expect(traffic).toHaveLength(120)
  expect(traffic.at(-1)).toEqual(rate)
  expect(keys[0]!.effect).toMatchObject({ redisPerSecondBefore: 2000, bytesSaved: 1000, millisecondsSaved: 4500 })
  expect(keys[0]!.effect!.localHitRate).toBeCloseTo(900 / 905, 3)
  expect(keys[0]!.effect!.combinedPerSecond).toBeCloseTo(30, 0)
  expect(alarms.map(({ id }) => id)).toEqual(['watcher:shop/h/main'])
  expect(instance.view(hub.clock.now())).toMatchObject({ tableVersion: 7, watchers: [{ state: 'expired' }] })
})

test('a sensor without statuses counts as reads by Redis', async () => {
  const hub = await TestCore.open([])
  hub.clock.advance(1000 - (hub.clock.now() % 1000))
  hub.keepReporting(4000, { a: 10 })
  expect(hub.core.views().overview().rate).toMatchObject({ redis: 100, local: 0 })
})

test('views show the hottest first with rate, share, sparkline, hosts and state', async () => {
  const hub = await TestCore.open([rule])
  for (let n = 0; n < 55; n++) {
    hub.report({ k1: 150, a: 30, b: 30 }, { hostId: 'h1', instanceId: 'i1' })
    hub.report({ k1: 50, huge: 740 }, { hostId: 'h2', instanceId: 'i2' })
    hub.clock.advance(100)
  }
  const keys = hub.core.views().keys({ limit: 10 })
  expect(keys.map(({ key }) => key)).toEqual(['k1', 'huge', 'a', 'b'])
  expect(keys[0]).toMatchObject({ state: 'hot', hosts: 2, ruleId: 'r', writesPerSecond: 0, errorPerSecond: 0 })
  expect(keys[0]!.ratePerSecond).toBeGreaterThan(1700)
  expect(keys[0]!.share).toBeCloseTo(0.2, 1)
  expect(keys[0]!.sparkline.slice(-3)).toEqual([2000, 2000, 2000])
  expect(keys[1]).toMatchObject({ state: 'cold', reason: 'cold: no rule matches this key', strategy: null })
  expect(
    hub.core
      .views()
      .keys({ limit: 10, state: 'hot' })
      .map(({ key }) => key),
  ).toEqual(['k1'])
  await hub.core.stored()
  const detail = await hub.core.views().key('main', 'k1')
  expect(detail!.topHosts.map(({ hostId, ratePerSecond }) => [hostId, ratePerSecond])).toEqual([
    ['h1', 1500],
    ['h2', 500],
  ])
  expect(detail!.events.map(({ kind }) => kind)).toEqual(['hot'])
  expect(await hub.core.views().key('main', 'never')).toBeUndefined()
})

test('views carry the error that sampling makes: per host and interval, larger for a hot key, which is sampled more thinly', async () => {
  const hub = await TestCore.open([{ ...rule, threshold: 960 }], { maxEntriesPerSecond: 10 })
  hub.keepReporting(5000, { k1: 150, a: 30 })
  expect(hub.core.collector.governor.pace).toEqual({ intervalMs: 100, samplingFloor: 11 })
  const [hot, cold] = hub.core.views().keys({ limit: 2 })
  expect(hot).toMatchObject({ key: 'k1', state: 'hot', hosts: 1, errorPerSecond: 150 })
  expect(cold).toMatchObject({ key: 'a', state: 'cold', hosts: 1, errorPerSecond: 100 })
})

test('a rule with an end is deleted at its end, in the name of the hub', async () => {
  const hub = await TestCore.open([{ ...rule, id: 'short', until: 60_000 }, rule])
  const wall = hub.core.options.runtime.wallClock
  await hub.core.putRule({ ...hub.core.rule('short')!, until: wall.now() + 5000 }, 'ann')
  await hub.clock.advanceAsync(4000)
  expect(hub.core.rule('short')).toBeDefined()
  await hub.clock.advanceAsync(3000)
  expect(hub.core.rules().rules.map(({ id }) => id)).toEqual([rule.id])
  const [last] = await hub.store.audit(1)
  expect(last).toMatchObject({ who: 'firebreak', what: 'delete rule short', after: null })
})

test('hot keys are handled, observed or unhandled, and the verdict counts all of them, not those that are shown', async () => {
  const observe = { id: 'watch', prefix: 'w', threshold: 1000, strategy: 'Observe' }
  const hub = await TestCore.open([rule, observe])
  const views = hub.core.views()
  expect(views.overview()).toMatchObject({ safety: 'unknown' })
  hub.report(Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`w${index}`, 2000])))
  expect(views.overview()).toMatchObject({
    safety: 'observed',
    hot: { handled: 0, observed: 60, unhandled: 0 },
    verdict:
      'Only watching: 60 keys are hot but only observed; nothing is done about them. Give a rule a strategy, or set its mode to on.',
  })
  hub.report({ k1: 2000 })
  expect(views.overview()).toMatchObject({ safety: 'unsafe', isSafe: false, hot: { observed: 60, unhandled: 1 } })
  const [instance] = hub.core.fleet.hosts.all()
  instance!.connections = 1
  expect(views.overview()).toMatchObject({
    safety: 'observed',
    isSafe: true,
    verdict: '61 keys are hot: 1 handled, 60 only observed.',
  })
  instance!.isOff = true
  expect(views.keys({ limit: 100 }).find(({ key }) => key === 'k1')!.handling).toBe('unhandled')
})

test('processes that fall silent are forgotten', async () => {
  const hub = await TestCore.open([], { hostTimeoutMs: 5000 })
  hub.report({ a: 1 })
  expect(hub.core.views().overview().sensors).toEqual({ connected: 0, hosts: 1, services: 1 })
  hub.clock.advance(7000)
  expect(hub.core.views().overview().sensors).toEqual({ connected: 0, hosts: 0, services: 0 })
})

test('a process that reports once a minute stays visible between its reports, and is forgotten when they end', async () => {
  const hub = await TestCore.open([], { hostTimeoutMs: 5000 })
  const hosts = () => hub.core.views().overview().sensors.hosts
  for (let minute = 0; minute < 3; minute++) {
    const now = hub.clock.now()
    hub.core.collector.collectText(`# ${now},${now},shop,minutely,interval=60000\n# main\na:60\n`, 1)
    hub.report({ a: 1 }, { hostId: 'usual' })
    expect(hosts()).toBe(2)
    hub.clock.advance(59_000)
    expect(hosts()).toBe(1)
  }
  hub.clock.advance(100_000)
  expect(hosts()).toBe(0)
})

test.each([
  [1000, 1000],
  [1000, 60_000],
  [5000, 1000],
])(
  'keys and host of a process that reports every %i ms stay as they are between its reports',
  async (intervalMs, windowMs) => {
    const perSecond = (rate: number) => (rate * windowMs) / 1000
    const hub = await TestCore.open([{ id: 'r', prefix: 'hot', threshold: perSecond(90), windowMs, minHoldMs: 1000 }])
    const shown = () => {
      const { keys, sensors } = hub.core.views().overview()
      return [sensors.hosts, ...keys.map(({ key, state, ratePerSecond }) => `${key} ${state} ${ratePerSecond > 0}`)]
    }
    const report = () => {
      const now = hub.clock.now()
      const counts = `hot:${intervalMs / 5},calm:${intervalMs / 20}`
      hub.core.collector.collectText(`# ${now},${now},python,h1,interval=${intervalMs}\n# main\n${counts}\n`, 1)
    }
    const seen = new Set<string>()
    const beforeSteady = Math.ceil(windowMs / intervalMs)
    for (let nth = 0; nth < beforeSteady + 20; nth++) {
      report()
      // Never quite on time.
      for (let passed = 0; passed < intervalMs + ((nth * 37) % 60); passed += 20) {
        hub.clock.advance(20)
        if (nth >= beforeSteady) seen.add(shown().join(', '))
      }
    }
    expect([...seen]).toEqual(['1, hot hot true, calm cold true'])
    expect(await hub.kinds('hot')).not.toContain('cooled')
    // Half an interval late it is given up, and with it the key cools as without an interval.
    hub.clock.advance(intervalMs * 0.5 + windowMs + 2000)
    expect(await hub.kinds('hot')).toContain('cooled')
    await hub.core.close()
  },
)

test('the rate of a key that is reported once a second, never quite on time, is the one reported', async () => {
  const hub = await TestCore.open([{ id: 'r', prefix: 'k', threshold: 100 }])
  const rates: number[] = []
  for (let nth = 0; nth < 40; nth++) {
    const now = hub.clock.now()
    hub.core.collector.collectText(`# ${now},${now},python,h1,interval=1000\n# main\nk:500\n`, 1)
    for (let passed = 0; passed < 960 + ((nth * 37) % 80); passed += 20) {
      hub.clock.advance(20)
      if (nth > 0) rates.push(hub.core.views().keys({ limit: 1 })[0]!.ratePerSecond)
    }
  }
  expect(Math.min(...rates)).toBeGreaterThanOrEqual(400)
  expect(Math.max(...rates)).toBeLessThanOrEqual(600)
  await hub.core.close()
})

test('an interval does not make a key look hotter than it is, nor hold one that is no longer reported as hot', async () => {
  const hub = await TestCore.open([{ id: 'r', prefix: 'k', threshold: 100, minHoldMs: 1000 }])
  for (const count of [400, 400, 400, 10, 10]) {
    const now = hub.clock.now()
    hub.core.collector.collectText(`# ${now},${now},python,h1,interval=1000\n# main\nk:${count},k-calm:90\n`, 1)
    hub.clock.advance(1000)
  }
  expect(hub.phase('k')).toBe('cold')
  expect(await hub.kinds('k')).toEqual(['hot', 'cooled'])
  expect(await hub.kinds('k-calm')).toEqual([])
  await hub.core.close()
})

test('an interval of a minute is honoured, above its bound refused, and rules with a shorter window are named', async () => {
  const pace = { reportIntervalMs: 60_000, maxReportIntervalMs: 60_000 }
  const hub = await TestCore.open([{ id: 'short', prefix: 'k', threshold: 100, windowMs: 1000 }], pace)
  hub.clock.advance(5000)
  expect(hub.core.collector.governor.pace.intervalMs).toBe(60_000)
  const named = () => hub.core.alarms.list().filter(({ id }) => id === 'report-interval')
  expect(named()).toMatchObject([{ cause: expect.stringMatching(/60000 ms.*short/) }])
  await hub.core.putRule(parseRule({ id: 'short', prefix: 'k', threshold: 100, windowMs: 60_000 }), 'ann')
  expect(named()).toEqual([])
  await expect(TestCore.open([], { reportIntervalMs: 60_000 })).rejects.toThrow(/maxReportIntervalMs \(5000\)/)
})
