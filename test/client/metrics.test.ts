import { exposeMetrics, protect, shieldOf, unprotect } from '@firebreak/client'
import type { BatchResultLike, MeterLike, ObservableLike } from '@firebreak/core/metrics'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
// The real interface: only its type, to see that ours is a part of it.
import type { Meter } from '@opentelemetry/api'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

let server: RedisServer
let fixture: Fixture
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

/** A meter as OpenTelemetry's: instruments are named once and told when it collects. */
function testMeter() {
  const instruments = new Map<ObservableLike, string>()
  const callbacks = new Set<(result: BatchResultLike) => void>()
  const create = (kind: string) => (name: string) => {
    const instrument = { addCallback() {} }
    instruments.set(instrument, `${kind} ${name}`)
    return instrument
  }
  const meter: MeterLike = {
    createObservableGauge: create('gauge'),
    createObservableCounter: create('counter'),
    addBatchObservableCallback: (callback) => void callbacks.add(callback),
    removeBatchObservableCallback: (callback) => void callbacks.delete(callback),
  }
  const collect = () => {
    const seen: Record<string, number> = {}
    const observe: BatchResultLike['observe'] = (instrument, value, labels = {}) => {
      const text = Object.entries(labels).map(([name, label]) => ` ${name}=${label}`)
      seen[`${instruments.get(instrument)}${text.join('')}`] = value
    }
    for (const callback of callbacks) callback({ observe })
    return seen
  }
  return { meter, collect }
}

test("a meter of OpenTelemetry's own interface is one that fits", () => {
  const expose: (client: object, meter: Meter) => () => void = exposeMetrics
  expect(expose).toBe(exposeMetrics)
})

test("an application's meter sees what its shield counts, handles and keeps, and no key", async () => {
  const redis = await fixture.client({ canaryMs: 20 })
  const { meter, collect } = testMeter()
  const end = exposeMetrics(redis, meter)
  expect(collect()).toMatchObject({
    'gauge firebreak_shield_hub_connected': 1,
    'gauge firebreak_shield_off': 0,
    'counter firebreak_shield_local_hits_total cluster=main': 0,
  })

  await fixture.plain.set('product:secret-name', 'value')
  await fixture.makeHot(redis, 'product:secret-name')
  for (let read = 0; read < 100; read++) await redis.get('product:secret-name')
  await redis.set('other-key', 'x')
  // The counters are those of the last status, as the hub got them.
  const told = (name: 'reads' | 'localHits' | 'writes') =>
    fixture.hub.statuses.reduce((sum, { counters }) => sum + counters[name], 0)
  await waitFor(() => told('localHits') >= 100 && told('writes') === 1)
  await waitFor(() => collect()['gauge firebreak_shield_staleness_ms cluster=main'] !== undefined)
  const seen = collect()
  const total = (name: string) => seen[`counter firebreak_shield_${name}_total cluster=main`]!
  expect([total('reads'), total('local_hits'), total('writes')]).toEqual([told('reads'), told('localHits'), 1])
  expect(total('redis_reads') + total('local_hits')).toBe(total('reads'))
  expect(total('loads')).toBeGreaterThan(0)
  expect(seen).toMatchObject({
    'gauge firebreak_shield_hot_keys cluster=main strategy=LocalCache': 1,
    'gauge firebreak_shield_hot_keys_by_group cluster=main group=product': 1,
    'gauge firebreak_shield_cached_keys cluster=main': 1,
    'gauge firebreak_shield_watchers cluster=main state=live': 1,
    'gauge firebreak_shield_table_version': fixture.hub.version,
    'counter firebreak_shield_reports_dropped_total': 0,
  })
  expect(seen['gauge firebreak_shield_cached_bytes cluster=main']).toBeGreaterThan(0)
  await waitFor(() => {
    const sent = collect()['counter firebreak_shield_reports_sent_total']!
    return sent > 0 && sent === fixture.hub.reports.length
  })
  expect(JSON.stringify(seen)).not.toContain('secret-name')
  end()
  expect(collect()).toEqual({})
})

test('groups of hot keys are capped', async () => {
  const redis = await fixture.client()
  const { meter, collect } = testMeter()
  exposeMetrics(redis, meter)
  const groups = () => Object.keys(collect()).filter((name) => name.includes('hot_keys_by_group'))
  fixture.hub.heat(
    'main',
    Array.from({ length: 30 }, (_, n) => `group${n}:a`),
  )
  await waitFor(() => groups().length > 0)
  expect(groups()).toHaveLength(21)
  expect(groups().at(-1)).toContain('group=other')
})

test('a client that is not protected has no figures', () => {
  const client = new Redis({ lazyConnect: true })
  const { meter, collect } = testMeter()
  exposeMetrics(client, meter)()
  expect(shieldOf(client)).toBeUndefined()
  expect(collect()).toEqual({})
  protect(client, { hubs: [], tableFile: false })
  exposeMetrics(client, meter)
  expect(collect()).toMatchObject({ 'gauge firebreak_shield_hub_connected': 0 })
  unprotect(client)
  client.disconnect()
})

test('a key that is redacted shows the group of its outside name', async () => {
  const redis = await fixture.client({ redactKey: (key) => `hidden:${key.length}` })
  const { meter, collect } = testMeter()
  exposeMetrics(redis, meter)
  await redis.get('product:1')
  fixture.hub.heat('main', ['hidden:9'])
  const groups = await waitFor(() => {
    const names = Object.keys(collect()).filter((name) => name.includes('hot_keys_by_group'))
    return names.length > 0 && names
  })
  expect(groups).toEqual(['gauge firebreak_shield_hot_keys_by_group cluster=main group=hidden'])
})
