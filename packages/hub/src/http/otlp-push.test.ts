import type { OtlpAttribute, OtlpMetric } from '@firebreak/core/metrics'
import { freePort, type OtlpCollector, startOtlpCollector, waitFor } from '@firebreak/testkit'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Hub, type HubOptions, startHub } from '../start-hub.ts'
import { TestSensor } from '../testing/test-sensor.ts'

let collector: OtlpCollector
const ends: (() => unknown)[] = []
beforeEach(async () => {
  collector = await startOtlpCollector()
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await collector.stop()
})

async function hubWith(options: HubOptions): Promise<Hub> {
  const hub = await startHub({ logLevel: 'silent', ...options })
  ends.push(() => hub.close())
  return hub
}

const seriesName = (name: string, attributes: readonly OtlpAttribute[]) => {
  const labels = attributes.map(({ key, value }) => `${key}="${value.stringValue}"`).sort()
  return labels.length === 0 ? name : `${name}{${labels.join(',')}}`
}

/** What was pushed, as Prometheus names it: each series with its value, each metric with its type. */
function pushed(metrics: Iterable<OtlpMetric>): { series: Record<string, number>; types: Record<string, string> } {
  const series: Record<string, number> = {}
  const types: Record<string, string> = {}
  for (const { name, gauge, sum, histogram } of metrics) {
    types[name] = gauge ? 'gauge' : sum ? 'counter' : 'histogram'
    for (const { attributes, asDouble } of (gauge ?? sum)?.dataPoints ?? []) {
      series[seriesName(name, attributes)] = asDouble
    }
    for (const { attributes, count, sum: total } of histogram?.dataPoints ?? []) {
      series[seriesName(`${name}_count`, attributes)] = Number(count)
      series[seriesName(`${name}_sum`, attributes)] = total
    }
  }
  return { series, types }
}

async function scraped({ url }: Hub): Promise<ReturnType<typeof pushed>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const series: Record<string, number> = {}
  for (const [, name, labels, value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const sorted = labels?.match(/\w+="[^"]*"/g)?.sort()
    if (!name!.endsWith('_bucket'))
      series[sorted === undefined ? name! : `${name}{${sorted.join(',')}}`] = Number(value)
  }
  const types = Object.fromEntries([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]))
  return { series, types }
}

/** Only what the hub itself counts, and not the pushes, which go on. */
function ours(series: Record<string, number>): Record<string, number> {
  const names = Object.keys(series).filter((name) => /^firebreak_(?!otlp)/.test(name))
  return Object.fromEntries(names.sort().map((name) => [name, series[name]!]))
}

test('a collector gets what /metrics shows in the same moment, each figure in its form', async () => {
  const rule = { id: 'product', prefix: 'product_', threshold: 10, strategy: 'LocalCache' }
  const hub = await hubWith({ otlp: { endpoint: collector.url, intervalMs: 50 }, initialRules: [rule], hubId: 'hub-a' })
  const sensor = await TestSensor.connect(hub.url)
  ends.push(() => sensor.close())
  sensor.report({ product_1: 5000, 'user:secret-name': 3 })
  await waitFor(() => sensor.table.get('main', 'product_1'))

  // Scraped before and after a push: where both are the same, the push lies between them.
  const [push, scrape] = await waitFor(async () => {
    const before = await scraped(hub)
    const seen = collector.requests.length
    await waitFor(() => collector.requests.length > seen)
    const between = pushed(collector.metrics().values())
    const after = await scraped(hub)
    const isStill = JSON.stringify(ours(before.series)) === JSON.stringify(ours(after.series))
    return isStill && [between, after]
  })
  expect(ours(push.series)).toEqual(ours(scrape.series))
  expect(push.series).toMatchObject({
    firebreak_reports_total: 1,
    firebreak_report_entries_total: 2,
    firebreak_sensors: 1,
    'firebreak_hot_keys{rule="product"}': 1,
  })
  // Of process and runtime too, whose values never stand still.
  expect(scrape.types).toMatchObject(push.types)
  expect(push.types).toMatchObject({
    firebreak_reports_total: 'counter',
    firebreak_hosts: 'gauge',
    process_cpu_seconds_total: 'counter',
  })
  expect(JSON.stringify(collector.requests)).not.toContain('secret-name')
  expect(collector.resource()).toMatchObject({ 'service.name': 'firebreak-hub', 'service.instance.id': 'hub-a' })
  expect(scrape.series['firebreak_otlp_exports_total{result="sent"}']).toBeGreaterThan(0)
})

test("headers, a name and attributes go with each push, and the hub's last figures when it ends", async () => {
  const hub = await hubWith({
    otlp: {
      endpoint: `${collector.url}/own/path`,
      headers: { 'api-key': 'k' },
      serviceName: 'hot-keys',
      attributes: { 'deployment.environment': 'test' },
      intervalMs: 600_000,
    },
  })
  await hub.close()
  expect(collector.requests).toHaveLength(1)
  expect(collector.requests[0]).toMatchObject({ path: '/own/path', headers: { 'api-key': 'k' } })
  expect(collector.resource()).toMatchObject({ 'service.name': 'hot-keys', 'deployment.environment': 'test' })
})

test('a collector that is away costs the hub two lines of its log and nothing else', async () => {
  const lines: string[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  const told = () => lines.filter((line) => line.includes('OpenTelemetry'))
  const port = await freePort()
  const otlp = { endpoint: `http://127.0.0.1:${port}`, intervalMs: 20, headers: { 'api-key': 'secret' } }
  const hub = await hubWith({ otlp, logger: logger as unknown as NonNullable<HubOptions['logger']> })
  const failed = async () => (await scraped(hub)).series['firebreak_otlp_exports_total{result="failed"}']!
  await waitFor(async () => (await failed()) >= 3)
  expect((await fetch(`${hub.url}/readyz`)).status).toBe(200)
  expect(told()).toHaveLength(1)
  const back = await startOtlpCollector({ port })
  ends.push(() => back.stop())
  await waitFor(() => back.requests.length >= 3)
  expect(told()).toHaveLength(2)
  expect(lines.join()).not.toContain('secret')
})

test('a hub with the switch thrown, or without an address, pushes nothing', async () => {
  const disabled = await hubWith({ otlp: { endpoint: collector.url, intervalMs: 20, isDisabled: true } })
  const plain = await hubWith({ otlp: { intervalMs: 20 } })
  const pushing = await hubWith({ otlp: { endpoint: collector.url, intervalMs: 20, serviceName: 'the-other' } })
  await waitFor(() => collector.requests.length >= 5)
  await Promise.all([disabled.close(), plain.close(), pushing.close()])
  const names = collector.requests.map(({ body }) => JSON.stringify(body.resourceMetrics[0]!.resource))
  expect(names.filter((name) => !name.includes('the-other'))).toEqual([])
})

test('an invalid address is refused before anything is opened', async () => {
  await expect(startHub({ otlp: { endpoint: 'collector:4318' } })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
})
