import type { NodeLoad } from '@firebreak/core'
import { encodeBinaryReport, keyBytes } from '@firebreak/core'
import { parseRule, RuleSet } from '@firebreak/core/rules'
import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { HubCore } from '../hub-core.ts'
import { MemoryStore } from '../store/memory-store.ts'

const cluster = 'main'
const capacity = 50_000

/** A whole hub on a fake clock, whose node's load follows from what is reported, less what the table keeps away. */
async function hubWith(rule: Record<string, unknown>, tellsLoad = true) {
  const runtime = fakeRuntime(1)
  const { clock } = runtime
  const core = await HubCore.open(new MemoryStore(), { runtime, loadOf: () => 0 })
  core.start()
  await core.putRule(parseRule({ id: 'auto', glob: '*', ...rule }), 'test')
  const table = new Map<string, string>()
  core.delivery.join('shop', {
    onDelta({ set, removed }) {
      for (const { key, reason } of set) table.set(key, reason)
      for (const { key } of removed) table.delete(key)
    },
  })
  let sequence = 0
  let served = 0
  /** One second of traffic: accesses a second by key, and writes of them. */
  async function second(
    counts: Record<string, number | [number, number]>,
    load: Partial<NodeLoad> = {},
  ): Promise<void> {
    for (let tick = 0; tick < 10; tick++) {
      clock.advance(100)
      const entries = Object.entries(counts).map(([key, given]) => {
        const [count, writes] = typeof given === 'number' ? [given, 0] : given
        if (!table.has(key)) served += Math.round(count / 10)
        return { key, count: Math.round(count / 10), writes: Math.round(writes / 10), bytes: 0 }
      })
      const times = { collectTs: clock.now(), sendTs: clock.now() }
      const report = {
        ...times,
        serviceId: 'shop',
        hostId: 'h',
        instanceId: 'i',
        sections: [{ redisClusterId: cluster, entries }],
      }
      core.collector.collectBinary(encodeBinaryReport(report), 0, ++sequence)
      await core.settled()
    }
    const sample = { redisClusterId: cluster, node: 'redis:1', spanMs: 1000, commands: served, roundTripMs: 0.2 }
    const cpuMs = (served / capacity) * 1000
    if (tellsLoad) core.keys.autopilot.takeLoad([{ ...sample, cpuMs, ...load }], 'h', clock.now())
    served = 0
  }
  return { core, clock, table, second }
}

/** Many keys of which none matters, `count` accesses a second in all. */
function crowd(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`small:${index}`, count / 200]))
}

/** The keys of the table that are not of the crowd: on a full node some of those are worth it too. */
function handled(table: ReadonlyMap<string, string>): string[] {
  return [...table.keys()].filter((key) => !key.startsWith('small'))
}

test('a calm node is left alone, whatever part of it one key has', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto' })
  // 30 % of the node, two thirds of it one key: 10,000 accesses a second, ten times the default threshold.
  for (let index = 0; index < 8; index++) await second({ ...crowd(5000), big: 10_000 })
  expect([...table.keys()]).toEqual([])
  const view = core.keys.autopilot.view(core.now())
  expect(view.nodes[0]).toMatchObject({ isStrained: false, linePerSecond: null, source: 'cpu' })
  expect(view.nodes[0]!.capacityPerSecond).toBeGreaterThan(capacity * 0.9)
  expect(view.nodes[0]!.unhandledUtilisation).toBeCloseTo(0.3, 1)
  await core.close()
})

test('on a node at 70 % a key with a fifth of it is handled, and the reason has words and figures', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto' })
  for (let index = 0; index < 3; index++) await second(crowd(20_000))
  for (let index = 0; index < 2; index++) await second({ ...crowd(28_500), big: 7000 })
  expect(handled(table)).toEqual(['big'])
  expect(table.get('big')).toMatch(
    /^hot because rule `auto`: [\d,]+ reads\/s.* and 0 writes\/s are [\d.]+ % of what node redis:1 can do \([\d,]+\/s\), which would be at \d+ %.*; LocalCache keeps [\d,]+\/s from it, worth it from [\d,]+\/s$/,
  )
  await core.close()
})

test('what is handled stays so while the node would be strained without it, and cools when it would not', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto', minHoldMs: 2000 })
  for (let index = 0; index < 3; index++) await second({ ...crowd(15_000), big: 5000 })
  // The node itself is at 40 % then: what it would be without the cache decides.
  for (let index = 0; index < 20; index++) await second({ ...crowd(20_000), big: 20_000 })
  expect(handled(table)).toEqual(['big'])
  for (let index = 0; index < 6; index++) await second({ ...crowd(12_000), big: 2000 })
  expect([...table.keys()]).toEqual([])
  await core.close()
})

test('a node that was strained and is less so keeps what is handled, and nothing more is begun', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto', minHoldMs: 1000 })
  for (let index = 0; index < 6; index++) await second(crowd(20_000))
  for (let index = 0; index < 3; index++) await second({ ...crowd(32_000), early: 6000 })
  expect(handled(table)).toEqual(['early'])
  for (let index = 0; index < 4; index++) await second({ ...crowd(22_000), early: 6000 })
  for (let index = 0; index < 4; index++) await second({ ...crowd(21_000), early: 6000, late: 1200 })
  expect(handled(table)).toEqual(['early'])
  await core.close()
})

test('a key whose writes undo the cache is passed over', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto' })
  for (let index = 0; index < 3; index++) await second(crowd(20_000))
  for (let index = 0; index < 4; index++) await second({ ...crowd(29_000), written: [8000, 4500], read: 4000 })
  expect(handled(table)).toEqual(['read'])
  await core.close()
})

test('a key that begins to burn is handled with its first reports, before a second is over', async () => {
  const { table, second, core, clock } = await hubWith({ threshold: 'auto' })
  for (let index = 0; index < 4; index++) await second(crowd(27_000))
  const at = clock.now()
  let handledAt = Number.POSITIVE_INFINITY
  core.delivery.join('shop', {
    onDelta: ({ set }) => set.some(({ key }) => key === 'big') && (handledAt = Math.min(handledAt, clock.now())),
  })
  await second({ ...crowd(27_000), big: 12_000 })
  expect(handledAt - at).toBeLessThanOrEqual(200)
  expect(table.has('big')).toBe(true)
  await core.close()
})

test('a key that burst on a calm node is handled as soon as the node is strained, and held from burst to burst', async () => {
  const { core, table, second } = await hubWith({ threshold: 'auto', minHoldMs: 1000 })
  for (let index = 0; index < 3; index++) await second(crowd(12_000))
  await second({ ...crowd(12_000), bursting: 8000 })
  for (let index = 0; index < 5; index++) await second(crowd(12_000))
  expect(handled(table)).toEqual([])
  for (let index = 0; index < 2; index++) await second(crowd(42_000))
  expect(handled(table)).toEqual(['bursting'])
  expect(table.get('bursting')).toMatch(/it burst to [\d,]+\/s \(1\d %\) \d s ago and is held for the next time$/)
  for (let index = 0; index < 5; index++) await second(crowd(42_000))
  expect(handled(table)).toEqual(['bursting'])
  for (let index = 0; index < 4; index++) await second(crowd(12_000))
  expect(handled(table)).toEqual([])
  await core.close()
})

test('a key whose writes undo the cache is not remembered for its bursts', async () => {
  const { core, table, second } = await hubWith({ threshold: 'auto', minHoldMs: 1000 })
  for (let index = 0; index < 3; index++) await second(crowd(12_000))
  for (let index = 0; index < 2; index++) await second({ ...crowd(12_000), written: [8000, 4500] })
  for (let index = 0; index < 4; index++) await second(crowd(42_000))
  expect(handled(table)).toEqual([])
  await core.close()
})

test('where INFO is refused, answers that wait tell of the load', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto' })
  const without = (roundTripMs: number) => ({ roundTripMs, cpuMs: undefined, commands: undefined }) as never
  for (let index = 0; index < 6; index++) await second({ ...crowd(20_000), big: 4000 }, without(0.3))
  expect([...table.keys()]).toEqual([])
  for (let index = 0; index < 8; index++) await second({ ...crowd(32_000), big: 8000 }, without(2))
  expect(table.has('big')).toBe(true)
  expect(core.keys.autopilot.view(core.now()).nodes[0]!.source).toBe('latency')
  await core.close()
})

test('while nobody tells of the load the rule is as the default one, and says so', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto' }, false)
  for (let index = 0; index < 6; index++) await second({ warm: 800, hot: 1500 })
  expect([...table.keys()]).toEqual(['hot'])
  expect(table.get('hot')).toContain('no sensor reports the load of its node')
  await core.close()
})

test('in shadow mode it looks on beside a threshold, and takes no key from it', async () => {
  const { table, second, core } = await hubWith({ threshold: 'auto', mode: 'shadow', priority: 100 })
  await core.putRule(parseRule({ id: 'count', glob: '*', threshold: 9000 }), 'test')
  for (let index = 0; index < 3; index++) await second(crowd(20_000))
  for (let index = 0; index < 4; index++) await second({ ...crowd(26_000), big: 10_000, less: 3000 })
  // The threshold decides; what the other rule would do is told, and in the history.
  expect(handled(table)).toEqual(['big'])
  expect(table.get('big')).toContain('rule `count`')
  const isBig = ({ key }: { readonly key: string }) => !key.startsWith('small')
  const beside = core.keys.autopilot.view(core.now()).beside.filter(isBig)
  expect(beside.map(({ key, isHandled }) => [key, isHandled]).sort()).toEqual([
    ['big', true],
    ['less', false],
  ])
  expect(beside[0]!.reason).toContain('(shadow: nothing is delivered)')
  await core.stored()
  const events = await core.store.history({ limit: 100 })
  expect(
    events
      .filter(isBig)
      .filter(({ kind, ruleId }) => kind === 'shadow' && ruleId === 'auto')
      .map(({ key }) => key)
      .sort(),
  ).toEqual(['big', 'less'])
  await core.close()
})

test('slots say which node is meant: only keys of the strained one are handled', async () => {
  const { core, table, second } = await hubWith({ threshold: 'auto' }, false)
  const { keySlotOfBytes } = await import('@firebreak/core/commands')
  const slots = ['a', 'b'].map((key) => keySlotOfBytes(keyBytes(key))).sort((x, y) => x - y)
  const border = slots[0]!
  const [calmKey, busyKey] = keySlotOfBytes(keyBytes('a')) === border ? ['a', 'b'] : ['b', 'a']
  const load = (slots: [number, number], cpuMs: number, commands: number) => ({
    redisClusterId: cluster,
    node: `redis:${slots[0]}`,
    slots: [slots],
    spanMs: 1000,
    commands,
    cpuMs,
    roundTripMs: 0.2,
  })
  for (let index = 0; index < 6; index++) {
    core.keys.autopilot.takeLoad(
      [
        load([0, border], 200, 5000),
        load([border + 1, 16_383], table.size > 0 ? 300 : 900, table.size > 0 ? 1500 : 5000),
      ],
      'h',
      core.now(),
    )
    await second({ [calmKey]: 5000, [busyKey]: 5000 })
  }
  expect([...table.keys()]).toEqual([busyKey])
  await core.close()
})

test('a rule that only looks on is no rule that keys are matched by', async () => {
  const { core } = await hubWith({ threshold: 'auto', mode: 'shadow' })
  const set = new RuleSet(core.rules().rules)
  expect(core.keys.autopilot.setRules(set).rules).toEqual([])
  expect(core.keys.autopilot.isWanted).toBe(true)
  await core.close()
})
