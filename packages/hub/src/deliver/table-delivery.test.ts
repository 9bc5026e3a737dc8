import { StrategyTable } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const rule = { id: 'r', prefix: 'k', threshold: 100, minHoldMs: 0 }

test('an entry goes only to services that touch its key, later ones included', async () => {
  const hub = await TestCore.open([rule])
  const shop = hub.listen('shop')
  const web = hub.listen('web')
  hub.report({ k1: 200 }, { serviceId: 'shop' })
  expect([shop.length, web.length]).toEqual([1, 0])
  hub.report({ k1: 1 }, { serviceId: 'web', instanceId: 'w' })
  expect(web[0]?.set.map(({ key }) => key)).toEqual(['k1'])
  expect(shop).toHaveLength(1)
  const late = hub.core.delivery.join('web', { onDelta() {} })
  expect(late.snapshot.entries.map(({ key }) => key)).toEqual(['k1'])
  expect(hub.core.delivery.join('api', { onDelta() {} }).snapshot.entries).toEqual([])
})

test('changes that are too many for one frame go out in several, each from where the last one ended', async () => {
  const hub = await TestCore.open([rule], { maxReportBytes: 1 << 26 })
  const names = Array.from({ length: 70 }, (_, index) => `k${index}-${'x'.repeat(60_000)}`)
  const frames: number[] = []
  const web = hub.listen('web')
  const { snapshot } = hub.core.delivery.join('shop', { onDelta: (_, frame) => frames.push(frame.length) })
  const table = new StrategyTable()
  table.applySnapshot(snapshot)
  const shop = hub.listen('shop')
  hub.report(Object.fromEntries(names.map((name) => [name, 200])))
  expect(shop.length).toBeGreaterThan(3)
  expect(Math.max(...frames)).toBeLessThan(2 * 1024 * 1024)
  for (const delta of shop) expect(table.applyDelta(delta).kind).toBe('applied')
  expect([...table.entries()].map(({ key }) => key).sort()).toEqual([...names].sort())
  const view = hub.core.delivery.view('shop')
  expect([table.version, view.isChanged]).toEqual([view.version, false])
  expect(web).toEqual([])
})

test('names that readers make up never cost a service its table', async () => {
  const hub = await TestCore.open([{ ...rule, minHoldMs: 600_000 }])
  // Nobody of the service has a link to the hub: it reports, and reads its table, over HTTP.
  hub.report({ k1: 200 }, { serviceId: 'shop' })
  const { delivery } = hub.core
  const { version } = delivery.view('shop')
  for (let name = 0; name < 20_100; name++) delivery.view(`no-${name}`)
  expect(hub.entry('k1')).toBeDefined()
  expect(delivery.view('shop').version).toBe(version)
  expect([...delivery.services()].map(([service]) => service)).toEqual(['shop'])
})

test('a key counts as hot until no rule has an entry for it any more', async () => {
  const hub = await TestCore.open([
    { ...rule, windowMs: 1000 },
    { ...rule, id: 'web', service: 'web', priority: 5, windowMs: 3000 },
  ])
  const isHot = (key = 'k1', cluster = 'main') => hub.core.delivery.has(cluster, key)
  expect(isHot()).toBe(false)
  hub.report({ k1: 200 }, { serviceId: 'shop' })
  hub.report({ k1: 200 }, { serviceId: 'web', instanceId: 'w' })
  expect(hub.core.delivery.size).toBe(2)
  expect([isHot(), isHot('k1', 'other'), isHot('k2')]).toEqual([true, false, false])
  hub.clock.advance(2000)
  expect([hub.core.delivery.size, isHot()]).toEqual([1, true])
  hub.clock.advance(2000)
  expect([hub.core.delivery.size, isHot()]).toEqual([0, false])
})

test('rules travel with the table: those of the service, shadow ones too, those that are off not', async () => {
  const hub = await TestCore.open([
    rule,
    { ...rule, id: 'web', service: 'web' },
    { ...rule, id: 'dark', mode: 'shadow' },
    { ...rule, id: 'off', mode: 'off' },
  ])
  const ids = (serviceId: string) => hub.core.delivery.snapshot(serviceId).rules.map(({ id }) => id)
  expect(ids('shop')).toEqual(['dark', 'r'])
  expect(ids('web')).toEqual(['dark', 'r', 'web'])
  const shop = hub.listen('shop')
  await hub.core.putRule(parseRule({ ...rule, id: 'web2', service: 'web' }), 'test')
  expect(shop).toEqual([])
  await hub.core.putRule(parseRule({ ...rule, threshold: 7 }), 'test')
  expect(shop[0]?.rules?.find(({ id }) => id === 'r')?.levels[0]?.enter).toBe(7)
})

test('the switch reaches every service, whatever it touches', async () => {
  const hub = await TestCore.open([rule])
  const listeners = ['shop', 'web'].map((service) => hub.listen(service))
  await hub.core.setOff(true, 'ann')
  await hub.core.setOff(false, 'ann')
  for (const deltas of listeners) expect(deltas.map(({ isOff }) => isOff)).toEqual([true, false])
  expect((await hub.store.audit(2)).map(({ who, what }) => [who, what])).toEqual([
    ['ann', 'switch on'],
    ['ann', 'switch off'],
  ])
})

test('whoever joins whenever ends with the table of its service, without a gap', async () => {
  const services = ['shop', 'web'] as const
  const step = fc.record({
    service: fc.constantFrom(...services),
    key: fc.constantFrom('k1', 'k2', 'k3'),
    count: fc.integer({ min: 1, max: 200 }),
    pauseMs: fc.constantFrom(0, 100, 900, 3000),
    joins: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const hub = await TestCore.open([rule])
      const tables: { service: string; table: StrategyTable }[] = []
      const join = (service: string) => {
        const table = new StrategyTable()
        const { snapshot } = hub.core.delivery.join(service, {
          onDelta: (delta) => expect(table.applyDelta(delta)).toEqual({ kind: 'applied' }),
        })
        table.applySnapshot(snapshot)
        tables.push({ service, table })
      }
      for (const service of services) join(service)
      for (const { service, key, count, pauseMs, joins } of steps) {
        hub.report({ [key]: count }, { serviceId: service, instanceId: service })
        hub.clock.advance(pauseMs)
        if (joins) join(service)
      }
      for (const { service, table } of tables) {
        const view = hub.core.delivery.view(service)
        expect([...table.entries()].map(({ key }) => key).sort()).toEqual(
          [...view.entries()].map(({ key }) => key).sort(),
        )
        expect(table.version).toBe(view.version)
      }
      await hub.core.close()
    }),
    { numRuns: 50 },
  )
})

test('a claim is confirmed by the table, and taken back where the hub sees it otherwise', async () => {
  const hub = await TestCore.open([rule, { ...rule, id: 'dark', prefix: 'd', mode: 'shadow' }])
  const deltas = hub.listen('shop')
  const instance = hub.core.fleet.hosts.find('shop', 'h', 'i', hub.clock.now())!
  const claim = (key: string, ruleId: string, heat: number) =>
    hub.core.keys.takeClaim(instance, { redisClusterId: 'main', key, ruleId, heat })
  claim('k1', 'r', 150)
  expect(deltas.at(-1)?.set[0]).toMatchObject({ key: 'k1', reason: 'hot because rule `r`: 150/s over 1 s ≥ 100' })
  for (const [key, ruleId, heat] of [
    ['k2', 'r', 50],
    ['k3', 'gone', 500],
    ['d1', 'dark', 500],
    ['other', 'r', 500],
  ] as const) {
    claim(key, ruleId, heat)
    expect(deltas.at(-1)?.removed).toEqual([{ redisClusterId: 'main', key }])
  }
  expect(deltas).toHaveLength(5)
  expect(await hub.kinds()).toEqual(['hot', 'claim', 'delivered', 'rollback', 'rollback', 'rollback', 'rollback'])
  // Nobody reports the key: it cools like any other.
  hub.clock.advance(3000)
  expect(hub.entry('k1')).toBeUndefined()
})
