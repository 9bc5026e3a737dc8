import type { MetricFamily } from '@firebreak/core/metrics'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import {
  freePort,
  type OtlpCollector,
  type RedisServer,
  startOtlpCollector,
  startRedis,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let server: RedisServer
let collector: OtlpCollector
const ends: (() => unknown)[] = []
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  collector = await startOtlpCollector()
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await collector.stop()
})

async function start(options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
  const proxy = await startProxy({ upstream: server.url, port: 0, drainMs: 200, ...options })
  ends.push(() => proxy.close())
  return proxy
}

async function connect({ port }: FirebreakProxy): Promise<RawClient> {
  const client = await RawClient.connect(port)
  ends.push(() => client.close())
  return client
}

/** A figure summed over all points that have these labels. */
function figure(families: readonly MetricFamily[], name: string, labels: Record<string, string> = {}): number {
  const family = families.find((candidate) => candidate.name === name)!
  let sum = 0
  for (const point of family.points) {
    const isMeant = Object.entries(labels).every(([label, value]) => point.labels[label] === value)
    if (isMeant) sum += 'value' in point ? point.value : point.count
  }
  return sum
}

test('a collector gets the figures that INFO shows, and how long each command took', async () => {
  const proxy = await start({ otlp: { endpoint: collector.url, intervalMs: 50, attributes: { zone: 'a' } } })
  const clients = [await connect(proxy), await connect(proxy)]
  for (let n = 0; n < 20; n++) await clients[n % 2]!.ask('GET', 'secret-name')
  const info = await clients[0]!.ask('FIREBREAK', 'INFO')
  const shown = (name: string) => Number(new RegExp(`firebreak_${name}:(\\d+)`).exec(info)![1])
  const request = () => collector.metrics().get('firebreak_proxy_request_ms')?.histogram?.dataPoints ?? []
  const countOf = (command: string) =>
    request().find(({ attributes }) => attributes.some(({ value }) => value.stringValue === command))
  await waitFor(() => collector.requests.length > 0 && countOf('GET')?.count === '20')
  const pushed = (name: string) => {
    const { gauge, sum } = collector.metrics().get(`firebreak_proxy_${name}`)!
    return (gauge ?? sum)!.dataPoints[0]!.asDouble
  }
  expect([pushed('clients'), pushed('connections_total')]).toEqual([2, 2])
  expect([shown('clients'), shown('connections_received')]).toEqual([2, 2])
  expect(pushed('slow_requests_total')).toBe(shown('slow_requests'))
  const { bucketCounts, explicitBounds, sum } = countOf('GET')!
  expect(bucketCounts.length).toBe(explicitBounds.length + 1)
  expect(bucketCounts.reduce((all, count) => all + Number(count), 0)).toBe(20)
  expect(sum).toBeGreaterThan(0)
  expect(collector.resource()).toMatchObject({ 'service.name': 'firebreak-proxy', zone: 'a' })
  expect(JSON.stringify(collector.requests)).not.toContain('secret-name')
})

test('the figures of all threads are in one push, each under its thread, to the last one', async () => {
  const proxy = await start({ workers: 2, otlp: { endpoint: collector.url, intervalMs: 600_000 } })
  const clients = await Promise.all(Array.from({ length: 12 }, () => connect(proxy)))
  await Promise.all(clients.map((client) => client.ask('GET', 'a')))
  const families = await proxy.families()
  expect(figure(families, 'firebreak_proxy_clients')).toBe(12)
  const perThread = ['0', '1'].map((thread) => figure(families, 'firebreak_proxy_clients', { thread }))
  expect(perThread[0]! + perThread[1]!).toBe(12)
  expect(figure(families, 'firebreak_proxy_request_ms', { command: 'GET' })).toBe(12)
  expect(figure(families, 'process_resident_memory_bytes')).toBeGreaterThan(1e7)
  await proxy.close()
  ends.length = 0
  expect(collector.requests).toHaveLength(1)
  const counts = collector.metrics().get('firebreak_proxy_connections_total')!.sum!.dataPoints
  expect(counts.reduce((sum, { asDouble }) => sum + asDouble, 0)).toBe(12)
  expect(counts).toHaveLength(2)
})

test("a proxy with a shield tells the shield's figures too", async () => {
  const hub = await TestHub.start()
  ends.push(() => hub.kill())
  const shield = { hubs: [hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false as const }
  const proxy = await start({ shield })
  const redis = await connect(proxy)
  await redis.ask('SET', 'product:1', 'v')
  hub.heat('main', ['product:1'])
  const families = await waitFor(async () => {
    await redis.ask('GET', 'product:1')
    const now = await proxy.families()
    return figure(now, 'firebreak_shield_local_hits_total') > 0 && now
  })
  expect(figure(families, 'firebreak_shield_hub_connected')).toBe(1)
  expect(figure(families, 'firebreak_shield_hot_keys', { cluster: 'main', strategy: 'LocalCache' })).toBe(1)
  expect(figure(families, 'firebreak_shield_hot_keys_by_group', { group: 'product' })).toBe(1)
})

test('no request fails or is told anything while the collector is away', async () => {
  const lines: string[] = []
  const logger = {
    info: (_: object, message: string) => lines.push(message),
    warn: (_: object, message: string) => lines.push(message),
  }
  const otlp = { endpoint: `http://127.0.0.1:${await freePort()}`, intervalMs: 20 }
  const proxy = await start({ otlp, logger })
  const redis = await connect(proxy)
  await waitFor(async () => {
    expect(await redis.ask('PING')).toBe('+PONG\r\n')
    return lines.length > 0
  })
  for (let n = 0; n < 50; n++) expect(await redis.ask('PING')).toBe('+PONG\r\n')
  expect(lines).toEqual([expect.stringContaining('are not reaching the OpenTelemetry collector')])
})

test('Prometheus finds the figures of all threads at /metrics, a supervisor an answer at /livez', async () => {
  const proxy = await start({ workers: 2, metricsPort: 0 })
  const clients = await Promise.all(Array.from({ length: 12 }, () => connect(proxy)))
  for (const client of clients) await client.ask('GET', 'secret-name')
  const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${proxy.metricsPort}${path}`, init)
  const page = await at('/metrics?x=1')
  expect(page.headers.get('content-type')).toContain('version=0.0.4')
  const text = await page.text()
  const sumOf = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].reduce((sum, [, value]) => sum + Number(value), 0)
  expect([sumOf('firebreak_proxy_clients'), sumOf('firebreak_proxy_request_ms_count')]).toEqual([12, 12])
  expect(text).toContain('thread="1"')
  expect(text).not.toContain('secret-name')
  expect((await at('/livez')).status).toBe(200)
  expect([(await at('/')).status, (await at('//')).status, (await at('/metrics', { method: 'POST' })).status]).toEqual([
    404, 404, 405,
  ])
})

test('a proxy that cannot serve its metrics does not start, and leaves nothing behind', async () => {
  const other = await start({ metricsPort: 0 })
  const port = await freePort()
  const both = startProxy({ upstream: server.url, port, metricsPort: other.metricsPort! })
  await expect(both).rejects.toThrow(/cannot serve its metrics: .*EADDRINUSE/)
  expect((await start({ port })).metricsPort).toBeUndefined()
})
