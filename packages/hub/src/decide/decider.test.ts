import { keyName } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const product = { id: 'product', prefix: 'product_', threshold: 1000, minHoldMs: 3000 }

test('a crossing is decided on arrival, in the same turn, with the reason in words', async () => {
  const hub = await TestCore.open([product])
  const deltas = hub.listen()
  hub.report({ product_1: 600 })
  expect(deltas).toEqual([])
  hub.report({ product_1: 3520 }, { hostId: 'host-2', instanceId: 'i2' })
  expect(deltas).toHaveLength(1)
  expect(deltas[0]!.set[0]).toMatchObject({
    redisClusterId: 'main',
    key: 'product_1',
    ruleId: 'product',
    reason: 'hot because rule `product`: 4,120/s over 1 s ≥ 1,000',
  })
})

test('counts of the window add up over hosts and leave with it', async () => {
  const hub = await TestCore.open([product])
  for (const n of [1, 2, 3]) hub.report({ product_1: 300 }, { instanceId: `i${n}` })
  hub.clock.advance(1200)
  hub.report({ product_1: 300 }, { instanceId: 'i4' })
  expect(hub.entry('product_1')).toBeUndefined()
})

test('cold, warming, hot, cooling and cold again', async () => {
  const hub = await TestCore.open([product])
  hub.keepReporting(1500, { product_1: 80 })
  expect(hub.phase('product_1')).toBe('warming')
  hub.keepReporting(1500, { product_1: 120 })
  expect(hub.phase('product_1')).toBe('hot')
  // Between exit and enter: stays hot, however long.
  hub.keepReporting(6000, { product_1: 80 })
  expect(hub.phase('product_1')).toBe('hot')
  expect(hub.entry('product_1')).toBeDefined()
  hub.keepReporting(2000, { product_1: 10 })
  expect(hub.phase('product_1')).toBe('cold')
  expect(hub.entry('product_1')).toBeUndefined()
  expect(await hub.kinds('product_1')).toEqual(['hot', 'cooled'])
})

test('a hot key is held for its minimum, cooling all the while', async () => {
  const hub = await TestCore.open([{ ...product, minHoldMs: 10_000 }])
  hub.report({ product_1: 2000 })
  hub.clock.advance(5000)
  expect(hub.phase('product_1')).toBe('cooling')
  expect(hub.entry('product_1')).toBeDefined()
  hub.clock.advance(5200)
  expect(hub.phase('product_1')).toBe('cold')
  expect(hub.entry('product_1')).toBeUndefined()
})

test('a key that cools and heats up again within its hold is hot without a second decision', async () => {
  const hub = await TestCore.open([{ ...product, minHoldMs: 10_000 }])
  hub.report({ product_1: 2000 })
  hub.clock.advance(3000)
  expect(hub.phase('product_1')).toBe('cooling')
  hub.keepReporting(1000, { product_1: 200 })
  expect(hub.phase('product_1')).toBe('hot')
  expect(await hub.kinds('product_1')).toEqual(['hot'])
})

test('an entry is extended while its key is hot, and never lapses then', async () => {
  const hub = await TestCore.open([product], { entryTtlMs: 4000 })
  const told: string[] = []
  hub.core.journal.onRecord = ({ kind }) => told.push(kind)
  for (let second = 0; second < 20; second++) {
    hub.keepReporting(1000, { product_1: 200 })
    if (second > 1) expect(hub.entry('product_1')!.until).toBeGreaterThan(hub.clock.now())
  }
  expect(told).toContain('extended')
  // Told, not kept: 200 hot keys would fill the history of a night with it.
  expect(await hub.kinds('product_1')).not.toContain('extended')
  expect(hub.entry('product_1')!.since).toBeLessThan(hub.clock.now() - 15_000)
})

test('levels of heat have a strategy each; going down waits for the hold', async () => {
  const hub = await TestCore.open([
    {
      id: 'levels',
      prefix: 'p',
      minHoldMs: 2000,
      levels: [
        { threshold: 100, strategy: 'Observe' },
        { threshold: 1000, strategy: 'LocalCache' },
        { threshold: 5000, strategy: { strategy: 'RateLimit', limit: 50 } },
      ],
    },
  ])
  const strategy = () => hub.entry('p1')?.strategy.strategy
  hub.report({ p1: 150 })
  expect(strategy()).toBe('Observe')
  hub.report({ p1: 1000 })
  expect(strategy()).toBe('LocalCache')
  hub.report({ p1: 6000 })
  expect(strategy()).toBe('RateLimit')
  hub.keepReporting(1500, { p1: 120 })
  expect(strategy()).toBe('RateLimit')
  hub.keepReporting(2000, { p1: 120 })
  expect(strategy()).toBe('LocalCache')
  expect(await hub.kinds('p1')).toEqual(['hot', 'strategy', 'strategy', 'strategy'])
})

test.each([
  ['reads', { count: 1000, writes: 600 }, { count: 1200, writes: 100 }, /1,500 reads\/s over 1 s ≥ 1,000/],
  ['writes', { count: 5000, writes: 600 }, { count: 600, writes: 600 }, /1,200 writes\/s over 1 s ≥ 1,000/],
  ['bytes', { count: 5000, bytes: 600 }, { count: 1, bytes: 12_400_000 }, /12.4 MB\/s over 1 s ≥ 1 KB/],
] as const)('a rule may measure %s', async (measure, below, above, reason) => {
  const hub = await TestCore.open([{ ...product, measure }])
  hub.report({ product_1: below })
  expect(hub.entry('product_1')).toBeUndefined()
  hub.report({ product_1: above })
  expect(hub.entry('product_1')?.reason).toMatch(reason)
})

test('a long window tells its count and its rate', async () => {
  const hub = await TestCore.open([{ ...product, windowMs: 3_600_000, threshold: 10_000 }])
  for (let minute = 0; minute < 5; minute++) {
    hub.report({ product_1: 2009 })
    hub.clock.advance(60_000)
  }
  expect(hub.entry('product_1')?.reason).toBe('hot because rule `product`: 10,045 over 1 h (3/s) ≥ 10,000')
})

test('a share counts once every host has reported, and only from a minimum on', async () => {
  const rule = { id: 'share', glob: '*', share: 0.2, strategy: 'Observe' }
  const hub = await TestCore.open([rule], { settleMs: 200, settleJitterMs: 0 })
  hub.report({ one: 300 })
  // Alone it is 100 % of what is known; the others are still to come.
  expect(hub.entry('one')).toBeUndefined()
  hub.report({ a: 150, b: 150, c: 150, d: 150, e: 150, f: 150, g: 150, h: 150, i: 150 }, { instanceId: 'i2' })
  hub.clock.advance(300)
  expect(hub.entry('one')).toBeUndefined()
  hub.report({ one: 300 })
  hub.clock.advance(400)
  expect(hub.entry('one')?.reason).toMatch(
    /^hot because rule `share`: 30.8 % of the service's accesses over 1 s ≥ 20 %$/,
  )
  const quiet = await TestCore.open([rule], { settleMs: 200, settleJitterMs: 0 })
  quiet.report({ lonely: 3 })
  quiet.clock.advance(900)
  expect(quiet.entry('lonely')).toBeUndefined()
})

test('a share may be of the node that holds the key', async () => {
  const rule = { id: 'share', glob: '*', share: 0.6, shareOf: 'node', strategy: 'Observe' }
  const nodeOfSlot = (_cluster: string, slot: number) => (slot < 8192 ? 'low' : 'high')
  const hub = await TestCore.open([rule], { settleMs: 100, settleJitterMs: 0, nodeOfSlot })
  // foo is slot 12182, bar 5061, hello 866.
  hub.report({ foo: 300, bar: 250, hello: 250 })
  hub.clock.advance(300)
  expect([hub.entry('foo') !== undefined, hub.entry('bar') !== undefined]).toEqual([true, false])
})

test('shadow mode decides and shows, and delivers nothing', async () => {
  const hub = await TestCore.open([{ ...product, mode: 'shadow' }])
  const deltas = hub.listen()
  hub.report({ product_1: 2000 })
  expect(hub.phase('product_1')).toBe('hot')
  expect(deltas).toEqual([])
  expect(await hub.kinds('product_1')).toEqual(['shadow'])
  hub.clock.advance(8000)
  expect(hub.phase('product_1')).toBe('cold')
  expect(deltas).toEqual([])
})

test('mode off is as if the rule were not there', async () => {
  const hub = await TestCore.open([{ ...product, mode: 'off' }])
  hub.report({ product_1: 2000 })
  expect(hub.phase('product_1')).toBe('cold')
})

test('a changed rule changes the strategy of hot keys, a deleted one lets them go', async () => {
  const hub = await TestCore.open([product])
  hub.report({ product_1: 2000 })
  const limited = { ...product, strategy: { strategy: 'RateLimit', limit: 10 } }
  await hub.core.putRule(parseRule(limited), 'test')
  expect(hub.entry('product_1')?.strategy).toMatchObject({ strategy: 'RateLimit', limit: 10 })
  await hub.core.deleteRule('product', 'test')
  expect(hub.entry('product_1')).toBeUndefined()
  expect(await hub.kinds('product_1')).toEqual(['hot', 'strategy', 'rollback'])
})

test('a rule that appears counts what is in the window only from then on, and keeps counts of rules that stay', async () => {
  const hub = await TestCore.open([product])
  hub.report({ product_1: 600, other: 600 })
  await hub.core.putRule(parseRule({ id: 'other', key: 'other', threshold: 1000 }), 'test')
  hub.report({ product_1: 600, other: 600 })
  expect(hub.entry('product_1')).toBeDefined()
  expect(hub.entry('other')).toBeUndefined()
  hub.report({ other: 600 })
  expect(hub.entry('other')).toBeDefined()
})

test('a service that gets a rule of its own leaves the shared entry, the others keep it', async () => {
  const hub = await TestCore.open([{ id: 'all', prefix: 'k', threshold: 1000 }])
  for (const serviceId of ['shop', 'web']) hub.report({ k1: 800 }, { serviceId, instanceId: serviceId })
  expect([hub.entry('k1', 'shop')?.ruleId, hub.entry('k1', 'web')?.ruleId]).toEqual(['all', 'all'])
  const own = { id: 'own', prefix: 'k', threshold: 1e6, service: 'shop', priority: 1 }
  await hub.core.putRule(parseRule(own), 'test')
  expect([hub.entry('k1', 'shop')?.ruleId, hub.entry('k1', 'web')?.ruleId]).toEqual([undefined, 'all'])
})

test('an evaluation that was armed under a rule that is gone decides nothing', async () => {
  const hub = await TestCore.open([{ id: 'share', glob: '*', share: 0.2 }], { settleMs: 500, settleJitterMs: 0 })
  hub.report({ one: 500 })
  await hub.core.deleteRule('share', 'test')
  hub.clock.advance(900)
  expect([hub.phase('one'), hub.core.delivery.size]).toEqual(['cold', 0])
})

test('services with rules of their own are counted apart, all others together', async () => {
  const hub = await TestCore.open([
    { id: 'all', prefix: 'k', threshold: 1000 },
    { id: 'shop', prefix: 'k', threshold: 300, service: 'shop', priority: 1, strategy: 'Observe' },
  ])
  hub.report({ k1: 290 }, { serviceId: 'shop' })
  hub.report({ k1: 600 }, { serviceId: 'web', instanceId: 'w' })
  expect(hub.entry('k1', 'web')).toBeUndefined()
  hub.report({ k1: 500 }, { serviceId: 'api', instanceId: 'a' })
  expect(hub.entry('k1', 'web')?.ruleId).toBe('all')
  expect(hub.entry('k1', 'api')?.ruleId).toBe('all')
  expect(hub.entry('k1', 'shop')).toBeUndefined()
  hub.report({ k1: 20 }, { serviceId: 'shop' })
  expect(hub.entry('k1', 'shop')?.ruleId).toBe('shop')
})

test('the minute setting: a first report arms the evaluation after 60 s and a random part of 10 s', async () => {
  // One for each key, once the hub is open.
  const values: number[] = []
  const clock = new FakeClock()
  const runtime = { ...fakeRuntime(1, clock), random: () => values.shift() ?? 0.5 }
  const hub = await TestCore.open(
    [{ id: 'share', glob: '*', share: 0.2, windowMs: 300_000 }],
    {
      settleMs: 60_000,
      settleJitterMs: 10_000,
      runtime,
    },
    undefined,
    clock,
  )
  values.push(0, 0.1, 0.95)
  const began = hub.clock.now()
  hub.report({ a: 400, b: 400, c: 400 })
  const hotAt = new Map<string, number>()
  for (let passed = 0; passed < 75_000; passed += 100) {
    hub.clock.advance(100)
    for (const key of ['a', 'b', 'c']) {
      if (!hotAt.has(key) && hub.phase(key) === 'hot') hotAt.set(key, hub.clock.now() - began)
    }
  }
  const times = [...hotAt.values()].sort((x, y) => x - y)
  expect(times).toHaveLength(3)
  expect(times[0]).toBeGreaterThanOrEqual(60_000)
  expect(times[2]).toBeLessThanOrEqual(70_200)
  expect(new Set(times).size).toBe(3)
})

test('on the minute setting a thousand keys are evaluated once each, 60 to 70 s after their first reports, not together', async () => {
  const clock = new FakeClock()
  const minute = { settleMs: 60_000, settleJitterMs: 10_000, runtime: fakeRuntime(11, clock) }
  // Of shares, so that nothing but the evaluation finds a key.
  const rule = { id: 'share', glob: '*', share: 0.0001, windowMs: 300_000 }
  const hub = await TestCore.open([rule], minute, undefined, clock)
  const deltas = hub.listen()
  const firstAt = new Map<string, number>()
  const hotAt = new Map<string, number>()
  const look = () => {
    for (const { set } of deltas.splice(0)) {
      for (const { key } of set) {
        expect(hotAt.has(key)).toBe(false)
        hotAt.set(key, hub.clock.now())
      }
    }
  }
  for (let tenth = 0; tenth < 900; tenth++) {
    // A hundred new keys in each of the first ten seconds, and all of them again every second.
    if (tenth % 10 === 0 && tenth < 500) {
      const keys = Array.from({ length: Math.min(1000, (tenth / 10 + 1) * 100) }, (_, id) => `k${id}`)
      for (const key of keys) if (!firstAt.has(key)) firstAt.set(key, hub.clock.now())
      hub.report(Object.fromEntries(keys.map((key) => [key, 40])))
    }
    hub.clock.advance(100)
    look()
  }
  expect(hotAt.size).toBe(1000)
  const waits = [...hotAt].map(([key, at]) => at - firstAt.get(key)!)
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(60_000)
  expect(Math.max(...waits)).toBeLessThanOrEqual(70_200)
  // The hundred keys of one moment are spread over the ten seconds.
  const atOnce = new Map<number, number>()
  for (let id = 0; id < 100; id++) {
    const at = hotAt.get(`k${id}`)!
    atOnce.set(at, (atOnce.get(at) ?? 0) + 1)
  }
  expect(atOnce.size).toBeGreaterThan(40)
  expect(Math.max(...atOnce.values())).toBeLessThan(10)
})

test('a crossing does not wait for the minute', async () => {
  const hub = await TestCore.open([product], { settleMs: 60_000, settleJitterMs: 10_000 })
  hub.report({ product_1: 1000 })
  expect(hub.entry('product_1')).toBeDefined()
})

test('the copies of a key that is not text have its bytes in their names', async () => {
  const strategy = { strategy: 'RedundantKeys', copyCount: 1, template: 'é:{key}:{n}' }
  const hub = await TestCore.open([{ id: 'any', pattern: '*', threshold: 1000, minHoldMs: 3000, strategy }])
  const key = keyName(Uint8Array.of(0xff, 0xc3))
  hub.report({ [key]: 2000 })
  const bytes = Buffer.concat([Buffer.from('é:'), Buffer.from([0xff, 0xc3]), Buffer.from(':1')])
  expect(hub.entry(key)?.strategy).toMatchObject({ copies: [keyName(bytes)] })
})

test('copies get names from the template, a bound on staleness goes into the strategy', async () => {
  const hub = await TestCore.open([
    { ...product, strategy: { strategy: 'RedundantKeys', copyCount: 2, template: '{key}_{n}' } },
    { id: 'stale', key: 's', threshold: 10, maxStalenessMs: 50 },
  ])
  hub.report({ product_100: 2000, s: 10 })
  expect(hub.entry('product_100')?.strategy).toMatchObject({ copies: ['product_100_1', 'product_100_2'] })
  expect(hub.entry('s')?.strategy).toMatchObject({ strategy: 'LocalCache', maxStalenessMs: 50 })
})
