import type {
  DryRunView,
  EpisodesView,
  HeatMapView,
  HeatReport,
  HistorySettingsView,
  HistoryView,
} from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import type { ApiRoute } from '../http/api-route.ts'
import { HubCore } from '../hub-core.ts'
import { stepsTo } from '../rules/rule-versions.ts'
import { versionRoutes } from '../rules/version-routes.ts'
import { TestCore } from '../testing/test-core.ts'
import { periodName } from './heat-report.ts'
import { historyRoutes } from './history-routes.ts'

const rule = { id: 'r', prefix: 'p', threshold: 300, strategy: 'LocalCache', minHoldMs: 1000 }
const caller = { who: 'ann', role: 'admin', isValid: () => true } as const

/** Calls a route as the server does, on the fake clock. */
async function ask<Answer>(
  { core }: TestCore,
  method: ApiRoute['method'],
  path: string,
  { query = {}, body, params = {} }: { query?: object; body?: unknown; params?: Record<string, string> } = {},
): Promise<Answer> {
  const route = [...historyRoutes(core), ...versionRoutes(core)].find(
    (one) => one.method === method && one.path === path,
  )!
  let sent: unknown
  const reply = { header() {}, type: () => ({ send: (text: unknown) => (sent = text) }) } as unknown as FastifyReply
  const answer = await route.handle({
    params,
    query: route.query?.parse(query),
    body: route.body?.parse(body ?? {}) ?? body,
    caller: caller as never,
    request: {} as FastifyRequest,
    reply,
  })
  return (sent ?? answer) as Answer
}

const noCounts = { writes: 0, loads: 0, bypasses: 0, invalidations: 0, flushes: 0, limited: 0, copyReads: 0 }

/** A night: two services, a key that is hot twice and answered from memory, and one that is only warm. */
async function night() {
  const hub = await TestCore.open([rule])
  hub.clock.advance(60_000 - (hub.clock.now() % 60_000))
  const from = hub.clock.now()
  // A report is dated to the interval before it.
  hub.clock.advance(1000)
  hub.listen('shop')
  for (let burst = 0; burst < 2; burst++) {
    for (let second = 0; second < 10; second++) {
      hub.keepReporting(1000, { 'p:1': 50, q_2: 4 })
      hub.report({ q_2: 1 }, { serviceId: 'cart', instanceId: 'i2', hostId: 'host-2' })
      const instance = hub.core.fleet.hosts.find('shop', 'host-1', 'i1', hub.clock.now())!
      const effect = { redisClusterId: 'main', key: 'p%3A1', localHits: 400, redisReads: 100, bytesSaved: 1, errors: 0 }
      hub.core.fleet.takeStatus(instance, {
        epoch: 'e',
        version: 1,
        isOff: false,
        counters: { ...noCounts, reads: 540, localHits: 400, droppedReports: 0, errors: 0 },
        watchers: [],
        keys: [effect],
      } as never)
    }
    hub.clock.advance(20_000)
  }
  hub.clock.advance(3000)
  await hub.core.stored()
  return { hub, from, to: hub.clock.now() }
}

test('series come with period, filter, page and totals; the events of the period with them', async () => {
  const { hub, from, to } = await night()
  const view = await ask<HistoryView>(hub, 'GET', '/v1/history', { query: { from, to } })
  expect(view).toMatchObject({ by: 'key', from, resolutionMs: 1000, total: 2, page: 1, pages: 1 })
  expect(view.points).toBe(Math.ceil((to - from) / 1000))
  expect(view.rows.map(({ name, accesses }) => [name, accesses])).toEqual([
    ['p%3A1', 10_000],
    ['q_2', 820],
  ])
  const [hot] = view.rows
  expect(hot).toMatchObject({ services: ['shop'], ruleIds: ['r'], saved: 8000, peakPerSecond: 500 })
  expect(hot!.series.reduce((sum, rate) => sum + rate, 0)).toBe(10_000)
  expect(hot!.states).toMatch(/^\.*m+\.+m+\.+$/)
  expect(view.totals.saved).toBe(8000)
  expect(view.traffic).toHaveLength(view.points)
  expect(view.events.map(({ kind }) => kind)).toContain('delivered')
  expect(view.recordedFrom).toBeLessThanOrEqual(from)
  // Pages and filters.
  const paged = await ask<HistoryView>(hub, 'GET', '/v1/history', { query: { from, to, limit: 1, page: 2 } })
  expect([paged.rows.map(({ name }) => name), paged.total, paged.pages]).toEqual([['q_2'], 2, 2])
  const names = async (query: object) => {
    const { rows } = await ask<HistoryView>(hub, 'GET', '/v1/history', { query: { from, to, ...query } })
    return rows.map(({ name }) => name)
  }
  expect(await names({ service: 'cart' })).toEqual(['q_2'])
  expect(await names({ rule: 'r' })).toEqual(['p%3A1'])
  expect(await names({ prefix: 'q' })).toEqual(['q_2'])
  expect(await names({ cluster: 'other' })).toEqual([])
  expect(await names({ slot: hot!.slot })).toEqual(['p%3A1'])
  expect(await names({ by: 'service' })).toEqual(['shop', 'cart'])
  expect(await names({ by: 'prefix', sort: 'name' })).toEqual(['p%3A', 'q_'])
  // A long period has fewer, longer points, and the same sums.
  const long = await ask<HistoryView>(hub, 'GET', '/v1/history', { query: { from: to - 7 * 86_400_000, to } })
  expect(long.points).toBeLessThanOrEqual(720)
  expect(long.resolutionMs % 60_000).toBe(0)
  expect(long.rows[0]).toMatchObject({ accesses: 10_000, saved: 8000 })
  await expect(ask(hub, 'GET', '/v1/history', { query: { from: to, to: from } })).rejects.toThrow(
    'from must be before to',
  )
})

test('a heat map has a row for each slot, node or prefix and a column for each point', async () => {
  const { hub, from, to } = await night()
  const map = await ask<HeatMapView>(hub, 'GET', '/v1/history/heatmap', {
    query: { from, to, by: 'prefix', columns: 30 },
  })
  expect(map.columns).toBeLessThanOrEqual(30)
  expect(map.rows.map(({ name }) => name)).toEqual(['p%3A', 'q_'])
  expect(map.cells.map((row) => row.length)).toEqual([map.columns, map.columns])
  expect(map.max).toBeGreaterThan(400)
  expect(map.max).toBeLessThanOrEqual(500)
  const slots = await ask<HeatMapView>(hub, 'GET', '/v1/history/heatmap', { query: { from, to } })
  expect(slots.rows).toHaveLength(2)
  expect(slots.rows.map(({ name }) => Number(name))).toEqual(
    slots.rows.map(({ name }) => Number(name)).sort((a, b) => a - b),
  )
})

test('each episode tells when it was detected, delivered, handled and over', async () => {
  const { hub, from, to } = await night()
  const view = await ask<EpisodesView>(hub, 'GET', '/v1/history/events', { query: { from, to } })
  expect(view).toMatchObject({ total: 2, page: 1, pages: 1 })
  for (const episode of view.episodes) {
    const { detectedAt, deliveredAt, handledAt, cooledAt } = episode
    expect(episode).toMatchObject({
      key: 'p%3A1',
      ruleId: 'r',
      end: 'cooled',
      services: ['shop'],
      strategies: ['LocalCache'],
    })
    expect(deliveredAt).toBeGreaterThanOrEqual(detectedAt)
    expect(handledAt).toBeGreaterThan(deliveredAt!)
    expect(cooledAt).toBeGreaterThan(handledAt!)
  }
  expect(view.deliveredMs).toBeGreaterThanOrEqual(0)
  expect(view.handledMs).toBeGreaterThan(0)
  expect(view.episodes[0]!.detectedAt).toBeGreaterThan(view.episodes[1]!.detectedAt)
  const total = async (query: object) => (await ask<EpisodesView>(hub, 'GET', '/v1/history/events', { query })).total
  expect(await total({ from, to, key: 'q_2' })).toBe(0)
  expect(await total({ from, to, service: 'cart' })).toBe(0)
  expect(await total({ from, to, rule: 'r', service: 'shop', key: 'p%3A1' })).toBe(2)
  expect(await total({ from, to, limit: 1, page: 2 })).toBe(2)
  // The rule was made by `test` before the period began.
  expect(await total({ from: from - 120_000, to, who: 'test' })).toBe(2)
  expect(await total({ from, to, who: 'bob' })).toBe(0)
})

test('single events have pages and the filter of the episodes, and a count of hot keys over the period', async () => {
  const { hub, from, to } = await night()
  const of = (query: object) =>
    ask<EpisodesView>(hub, 'GET', '/v1/history/events', { query: { from, to, events: 3, points: 20, ...query } })
  // Alarms belong to no episode.
  expect((await of({})).eventTotal).toBe(12)
  const first = await of({ service: 'shop' })
  const second = await of({ service: 'shop', eventsPage: 2 })
  const events = [...first.events!, ...second.events!]
  expect([first.eventTotal, first.eventPages]).toEqual([8, 3])
  expect(events.map(({ kind }) => kind)).toEqual(['cooled', 'handled', 'delivered', 'hot', 'cooled', 'handled'])
  expect((await of({ service: 'cart' })).events).toEqual([])
  expect((await of({ who: 'bob' })).eventTotal).toBe(0)
  expect(first.hotKeys).toHaveLength(20)
  expect(Math.max(...first.hotKeys!)).toBe(1)
  // Hot twice, with a pause between.
  expect(first.hotKeys!.join('')).toMatch(/^0*1+0+1+0*$/)
  expect(first.leftOut).toBe(0)
  expect(first.eventsFrom).toBeLessThanOrEqual(from + 2000)
})

test('events are filtered before the limit, and marks are spread over the whole period', async () => {
  const { hub, from, to } = await night()
  const of = async (query: object) =>
    (await ask<HistoryView>(hub, 'GET', '/v1/history', { query: { from, to, ...query } })).events
  expect((await of({ service: 'cart' })).length).toBe(0)
  expect((await of({ service: 'shop', limit: 2 })).length).toBe(2)
  expect((await of({ prefix: 'q' })).length).toBe(0)
  const noise = Array.from({ length: 300 }, (_, index) => ({
    at: to - 1000 + index,
    kind: 'delivered' as const,
    redisClusterId: 'main',
    key: `n${index}`,
    ruleId: 'other',
    text: 'LocalCache sent to 1 sensor of web',
  }))
  await hub.store.appendHistory(noise)
  expect((await of({ rule: 'r', limit: 200 })).length).toBe(8)
  expect((await of({ marks: 40 })).map(({ kind }) => kind)).toContain('alarm')
  const marks = await of({ marks: 40, rule: 'r' })
  expect(marks.map(({ kind }) => kind)).toEqual(['cooled', 'hot', 'cooled', 'hot'])
  expect(marks.at(-1)!.at).toBeLessThan(from + 5000)
  expect((await of({ marks: 1, rule: 'r' })).map(({ kind }) => kind)).toEqual(['hot'])
})

test('going back to earlier rules does not bring back what had an end that is past', () => {
  const lasting = parseRule({ id: 'lasting', prefix: 'a', threshold: 5 })
  const action = parseRule({ id: 'key:1', key: 'a1', threshold: 1, until: 5000 })
  const steps = (at: number) => stepsTo([], [lasting, action], at).put.map(({ id }) => id)
  expect(steps(4000)).toEqual(['lasting', 'key:1'])
  expect(steps(6000)).toEqual(['lasting'])
})

test('what was handled once is known for ever, also to a hub that starts again with nothing else kept', async () => {
  const empty = await TestCore.open([rule])
  expect(empty.core.views().overview().wasHandled).toBe(false)
  const { hub } = await night()
  expect(hub.core.views().overview().wasHandled).toBe(true)
  await hub.core.stored()
  await hub.store.trimHistory(hub.clock.now() + 1)
  const again = await HubCore.open(hub.store, { runtime: hub.core.options.runtime })
  expect(again.views().overview().wasHandled).toBe(true)
})

test('a report says what was hot in a day or a week, for how long, and what was saved', async () => {
  const { hub, to } = await night()
  for (const by of ['day', 'week'] as const) {
    const on = periodName(by, to)
    const report = await ask<HeatReport>(hub, 'GET', '/v1/reports', { query: { by, on } })
    expect(report).toMatchObject({ by, name: on, next: null })
    expect(report.totals).toMatchObject({ keys: 1, episodes: 2, falseAlarms: 0, saved: 8000 })
    const [key] = report.keys
    expect(key).toMatchObject({ key: 'p%3A1', episodes: 2, accesses: 10_000, saved: 8000, peakPerSecond: 500, days: 1 })
    expect(key!.hotMs).toBeGreaterThanOrEqual(20_000)
    expect(key!.hotMs).toBeLessThanOrEqual(26_000)
    expect(report.services).toMatchObject([{ name: 'shop', keys: 1, episodes: 2 }])
    expect(report.rules).toMatchObject([{ name: 'r', keys: 1, episodes: 2 }])
    expect(report.recurring).toEqual([])
    expect(report.coverage).toBeGreaterThan(0)
  }
  const csv = await ask<string>(hub, 'GET', '/v1/reports', { query: { format: 'csv' } })
  const [head, line, end] = csv.split('\r\n')
  expect(head).toMatch(/^cluster,key,services,rules,episodes,hot_seconds,/)
  expect(line).toMatch(/^main,p%3A1,shop,r,2,/)
  expect(end).toBe('')
  await expect(ask(hub, 'GET', '/v1/reports', { query: { on: '2026-02-30' } })).rejects.toThrow('there is no day')
})

test('what is kept can be set, is audited, and says what it costs', async () => {
  const { hub } = await night()
  const body = { maxBytesPerDay: 16 << 20, keepMs: { second: 600_000, tenSeconds: 3_600_000, minute: 86_400_000 } }
  const set = await ask<HistorySettingsView>(hub, 'PUT', '/v1/history/settings', { body })
  expect(set).toMatchObject(body)
  expect(set.cost.keptBytes).toBeGreaterThan(0)
  expect(set.cost.keptBytes).toBeLessThan(set.cost.maxKeptBytes)
  expect((await hub.store.audit(1))[0]).toMatchObject({
    who: 'ann',
    what: 'change what is kept of the past',
    after: body,
  })
  await hub.core.history.load()
  expect(hub.core.history.settings).toEqual(body)
})

test('a rule is tried on a period, and the rules go back to what they were', async () => {
  const { hub, from, to } = await night()
  const dry = await ask<DryRunView>(hub, 'POST', '/v1/rules/dry-run', {
    query: { from, to },
    body: { ...rule, threshold: 450 },
  })
  expect(dry).toMatchObject({ firings: 2, keys: 1, hot: [{ key: 'p%3A1', firings: 2 }] })
  // Versions: the rule, a change of it, another, and back to the first.
  const { parseRule } = await import('@firebreak/core/rules')
  await hub.core.putRule(parseRule({ ...rule, threshold: 900 }), 'bob')
  await hub.core.putRule(parseRule({ ...rule, id: 's' }), 'bob')
  const { versions, version } = await ask<{
    versions: { version: number; ruleId: string; who: string }[]
    version: number
  }>(hub, 'GET', '/v1/rules/versions')
  expect(version).toBe(3)
  expect(versions.map((one) => [one.version, one.ruleId, one.who])).toEqual([
    [3, 's', 'bob'],
    [2, 'r', 'bob'],
    [1, 'r', 'test'],
  ])
  const at = await ask<{ rules: { id: string; levels: { enter: number }[] }[]; changes: unknown[] }>(
    hub,
    'GET',
    '/v1/rules/versions/:version',
    { params: { version: '1' } },
  )
  expect(at.rules.map(({ id, levels }) => [id, levels[0]!.enter])).toEqual([['r', 300]])
  expect(at.changes).toHaveLength(2)
  expect(await ask(hub, 'POST', '/v1/rules/rollback', { body: { version: 1 } })).toEqual({ version: 5, changes: 2 })
  expect(hub.core.rules().rules.map(({ id, levels }) => [id, levels[0]!.enter])).toEqual([['r', 300]])
  expect((await hub.store.audit(1))[0]).toMatchObject({ who: 'ann', what: 'delete rule s' })
  await expect(ask(hub, 'POST', '/v1/rules/rollback', { body: { version: 77 } })).rejects.toThrow('no longer known')
})
