import type { HistoryEvent, Overview } from '@firebreak/core'
import { freePort, type GuardedChild, scale, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import { WireSensor } from './wire-sensor.ts'

const rule = { id: 'product', prefix: 'product_', threshold: 1000 }
const children: GuardedChild[] = []
const sensors: WireSensor[] = []

async function startHubProcess(options: Record<string, unknown>): Promise<{ child: GuardedChild; url: string }> {
  const settings = JSON.stringify({ initialRules: [rule], ...options })
  const child = startSource(new URL('./hub-process.ts', import.meta.url), [settings])
  children.push(child)
  const [, url] = await child.printed(/listening (\S+)/)
  return { child, url: url! }
}

async function connect(url: string, number = 1): Promise<WireSensor> {
  const sensor = new WireSensor(url, number)
  sensors.push(sensor)
  await waitFor(() => sensor.isReady)
  return sensor
}

afterEach(async () => {
  for (const sensor of sensors.splice(0)) sensor.close()
  await Promise.all(children.splice(0).map((child) => child.stop()))
})

test('a hub that is killed comes back with its epoch, its rules and its hot keys', async () => {
  const port = await freePort()
  const dataFolder = temporaryFolder('hub')
  const first = await startHubProcess({ port, dataFolder })
  const before = await connect(first.url)
  before.report({ product_1: 1500 })
  await waitFor(() => before.table.get('main', 'product_1'))
  // Once it is in the history it is in the table's store too: both are written in order.
  await waitFor(async () => {
    const { events } = (await (await fetch(`${first.url}/v1/history`)).json()) as { events: HistoryEvent[] }
    return events.some(({ kind }) => kind === 'hot')
  })
  first.child.signal('SIGKILL')
  await first.child.exited
  await waitFor(() => before.closeCode)
  const second = await startHubProcess({ port, dataFolder, initialRules: [] })
  const after = await connect(second.url)
  expect(after.table.get('main', 'product_1')?.ruleId).toBe('product')
  expect(after.table.rules.map(({ id }) => id)).toEqual(['product'])
  expect(after.table.epoch).toBe(before.table.epoch)
  expect(after.table.version).toBeGreaterThan(before.table.version)
})

test('a hub with ingest threads is asked for by a flag, and decides as any other', async () => {
  const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
  const child = startSource(main, ['hub', '--port', '0', '--log-level', 'error', '--ingest-threads', '2'])
  children.push(child)
  const [, url] = await child.printed(/hub (http:\S+)/)
  await fetch(`${url}/v1/rules/product`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
  })
  const sensor = await connect(url!)
  const keys = Array.from({ length: 8 }, (_, key) => `product_${key}`)
  sensor.report(Object.fromEntries(keys.map((key) => [key, 600])))
  sensor.report(Object.fromEntries(keys.map((key) => [key, 600])))
  await waitFor(() => keys.every((key) => sensor.table.get('main', key)))
  const overview = await waitFor(async () => {
    const answer = (await (await fetch(`${url}/v1/overview`)).json()) as Overview
    return answer.ingest.trackedKeys === keys.length ? answer : undefined
  })
  expect(overview.ingest.refused).toEqual({})
})

test('a store that was reset makes a new epoch, which is believed although its versions are lower', async () => {
  const first = await startHubProcess({ dataFolder: temporaryFolder('hub') })
  const before = await connect(first.url)
  before.report({ product_1: 1500 })
  await waitFor(() => before.table.get('main', 'product_1'))
  const second = await startHubProcess({ dataFolder: temporaryFolder('hub') })
  const after = await connect(second.url)
  expect(after.table.epoch).not.toBe(before.table.epoch)
  expect(before.table.applySnapshot(after.table.snapshot())).toEqual({ kind: 'applied' })
  expect(before.table.size).toBe(0)
})

test('SIGTERM drains: sensors are told, what was decided is stored, the process ends well', async () => {
  const dataFolder = temporaryFolder('hub')
  const first = await startHubProcess({ dataFolder })
  const sensor = await connect(first.url)
  sensor.report({ product_1: 1500 })
  await waitFor(() => sensor.table.get('main', 'product_1'))
  first.child.signal('SIGTERM')
  expect(await first.child.exited).toBe(0)
  expect(first.child.output()).toContain('closed')
  expect(await waitFor(() => sensor.closeCode)).toBe(1001)
  const second = await startHubProcess({ dataFolder })
  const { events } = (await (await fetch(`${second.url}/v1/history`)).json()) as { events: HistoryEvent[] }
  expect(events.map(({ kind, key }) => [kind, key])).toEqual([
    ['delivered', 'product_1'],
    ['hot', 'product_1'],
  ])
})

test('a fleet of sensors is held at the pace that the hub can take, and a change reaches all of them', async () => {
  const fleet = scale(300, 10_000)
  // Few sensors would not slow a hub of default settings; this one wants half of what they would send.
  const maxReportsPerSecond = Math.min(10_000, fleet * 5)
  const { url } = await startHubProcess({ maxReportsPerSecond })
  const expectedMs = Math.ceil((fleet * 1000) / maxReportsPerSecond)
  for (let n = 0; n < fleet; n++) {
    sensors.push(new WireSensor(url, n))
    // Not all at once: a listen backlog is a few hundred.
    if (n % 100 === 99) await waitFor(() => sensors.every(({ isReady }) => isReady), { timeoutMs: 60_000 })
  }
  await waitFor(() => sensors.every(({ isReady }) => isReady), { timeoutMs: 60_000 })
  await waitFor(() => sensors.every(({ intervalMs }) => intervalMs >= expectedMs), { timeoutMs: 20_000 })
  for (const [n, sensor] of sensors.entries()) sensor.keepReporting(() => ({ [`cold-${n}`]: 1, shared: 1 }))
  const beats = sensors.map(({ heartbeats }) => heartbeats)
  await waitFor(() => sensors.every(({ heartbeats }, index) => heartbeats >= beats[index]! + 2), { timeoutMs: 30_000 })
  const began = performance.now()
  let reached = 0
  let lastMs = 0
  for (const sensor of sensors) {
    sensor.onTable = () => {
      if (sensor.table.get('main', 'product_9') === undefined) return
      sensor.onTable = undefined
      reached++
      lastMs = performance.now() - began
    }
  }
  sensors[0]!.report({ product_9: 5000 })
  await waitFor(() => reached === fleet, { timeoutMs: 30_000, what: () => `${reached} of ${fleet} sensors` })
  const overview = (await (await fetch(`${url}/v1/overview`)).json()) as Overview
  expect(overview.sensors.connected).toBe(fleet)
  expect(overview.ingest.refused).toEqual({})
  expect(sensors.every(({ gaps, closeCode }) => gaps === 0 && closeCode === undefined)).toBe(true)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const rss = Number(metrics.match(/^process_resident_memory_bytes (\S+)$/m)?.[1])
  // Stated, not judged: what a hub takes depends on the machine.
  console.log(
    `${fleet} sensors: a table change reached the last after ${lastMs.toFixed(0)} ms, every ${sensors[0]!.intervalMs} ms ` +
      `a report, ${overview.ingest.reportsPerSecond} reports/s, the hub took ${(rss / 2 ** 20).toFixed(0)} MB`,
  )
  // The test process takes in all the deltas by itself, so the bound is generous.
  expect(lastMs).toBeLessThan(10_000)
})

test('a report interval above its bound is refused at the start, in words', async () => {
  const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
  const child = startSource(main, ['hub', '--port', '0', '--report-interval-ms', '60000'])
  children.push(child)
  expect(await child.exited).not.toBe(0)
  expect(child.output()).toMatch(/reportIntervalMs is 60000.*maxReportIntervalMs \(5000\)/)
})
