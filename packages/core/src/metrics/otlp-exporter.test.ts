import { freePort, type OtlpCollector, startOtlpCollector, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemTimers, type Timers } from '../time/clock.ts'
import type { MetricFamily } from './metric-family.ts'
import { metricsSignal, OtlpExporter } from './otlp-exporter.ts'
import { type OtlpOptions, resolveOtlpOptions } from './otlp-options.ts'

let collector: OtlpCollector
const ends: (() => unknown)[] = []
beforeEach(async () => {
  collector = await startOtlpCollector()
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
  await collector.stop()
})

let value = 0
const families = (): MetricFamily[] => [
  { kind: 'counter', name: 'calls_total', help: 'Calls', points: [{ labels: {}, value: ++value }] },
]

/** Timers that shorten pauses up to 10 s by `factor`, with a list of the requested pauses. */
function quickTimers(factor: number): Timers & { readonly asked: number[] } {
  const asked: number[] = []
  return {
    asked,
    ...systemTimers,
    setTimeout(callback, delayMs) {
      asked.push(delayMs)
      return systemTimers.setTimeout(callback, delayMs > 10_000 ? delayMs : delayMs * factor)
    },
  }
}

function open(
  options: OtlpOptions = {},
  { collect = families, ...more }: { timers?: Timers; collect?: () => MetricFamily[] } = {},
) {
  const lines: string[] = []
  const exporter = new OtlpExporter({
    otlp: resolveOtlpOptions({ endpoint: collector.url, ...options })!,
    resource: { 'service.name': 'firebreak-test', 'service.instance.id': 'one' },
    signal: metricsSignal(collect),
    logger: {
      info: (data, message) => lines.push(`info ${message} ${JSON.stringify(data)}`),
      warn: (data, message) => lines.push(`warn ${message} ${JSON.stringify(data)}`),
    },
    random: () => 0.5,
    ...more,
  })
  ends.push(() => exporter.close())
  return { exporter, lines }
}

test('an export is a POST of JSON with the headers, under the attributes of the process and the user', async () => {
  const { exporter, lines } = open({
    headers: { 'api-key': 'k' },
    serviceName: 'mine',
    attributes: { 'deployment.environment': 'prod', 'service.instance.id': 'two' },
  })
  await exporter.export()
  const [request] = collector.requests
  expect(request).toMatchObject({
    method: 'POST',
    path: '/v1/metrics',
    headers: { 'content-type': 'application/json', 'api-key': 'k' },
  })
  expect(collector.resource()).toEqual({
    'service.name': 'mine',
    'service.instance.id': 'two',
    'deployment.environment': 'prod',
  })
  expect(collector.metrics().get('calls_total')?.sum?.dataPoints[0]?.asDouble).toBe(value)
  expect(exporter.counts).toEqual({ sent: 1, failed: 0, rejectedPoints: 0 })
  expect(lines).toEqual([])
})

test('it pushes at its interval, and once more when it is closed', async () => {
  const { exporter } = open({ intervalMs: 20 })
  exporter.start()
  await waitFor(() => collector.requests.length >= 3)
  await exporter.close()
  const { length } = collector.requests
  expect(collector.metrics().get('calls_total')?.sum?.dataPoints[0]?.asDouble).toBe(value)
  const sent = exporter.counts.sent
  expect(sent).toBe(length)
  await exporter.close()
  expect(exporter.counts.sent).toBe(sent)
})

test.each([429, 502, 503, 504])('the same request is sent again after %i, after pauses that double', async (status) => {
  const timers = quickTimers(0.001)
  const { exporter, lines } = open({ timeoutMs: 60_000 }, { timers })
  collector.answers.push({ status }, { status })
  await exporter.export()
  expect(collector.requests).toHaveLength(3)
  expect(collector.requests[2]!.body).toEqual(collector.requests[0]!.body)
  expect(timers.asked.filter((ms) => ms !== 60_000)).toEqual([1000, 2000])
  expect(exporter.counts).toMatchObject({ sent: 1, failed: 0 })
  expect(lines).toEqual([])
})

test.each([400, 401, 404, 500, 307])('a request that was answered with %i is not sent again', async (status) => {
  const { exporter, lines } = open()
  collector.answers.push({ status, headers: { location: `${collector.url}/elsewhere` } })
  await exporter.export()
  expect(collector.requests).toHaveLength(1)
  expect(exporter.counts).toMatchObject({ sent: 0, failed: 1 })
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(`it answered ${status}`)
})

test('Retry-After is waited for', async () => {
  const timers = quickTimers(0.001)
  const { exporter } = open({ timeoutMs: 60_000 }, { timers })
  collector.answers.push({ status: 503, headers: { 'retry-after': '7' } })
  await exporter.export()
  expect(timers.asked.filter((ms) => ms !== 60_000)).toEqual([7000])
  expect(collector.requests).toHaveLength(2)
})

test('a Retry-After longer than the export ends it, and nothing is sent before its time', async () => {
  const { exporter } = open()
  const date = new Date(Date.now() + 120_000).toUTCString()
  collector.answers.push({ status: 429, headers: { 'retry-after': date } })
  await exporter.export()
  await exporter.export()
  expect(collector.requests).toHaveLength(1)
  expect(exporter.counts).toMatchObject({ sent: 0, failed: 1 })
})

test('an unreachable collector is reported once, and once more when it is back', async () => {
  const port = await freePort()
  const { exporter, lines } = open({ endpoint: `http://127.0.0.1:${port}/secret?key=secret`, intervalMs: 20 })
  exporter.start()
  await waitFor(() => exporter.counts.failed >= 3)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/^warn metrics are not reaching .*ECONNREFUSED/)
  const back = await startOtlpCollector({ port })
  ends.push(() => back.stop())
  await waitFor(() => exporter.counts.sent >= 3)
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatch(/^info the OpenTelemetry collector takes metrics again/)
  expect(lines.join()).not.toContain('secret')
})

test('a request to a collector that never answers ends at its deadline, and only one runs at a time', async () => {
  const { exporter, lines } = open({ timeoutMs: 200, intervalMs: 20 })
  collector.answers.push('none', 'none')
  expect(exporter.export()).toBe(exporter.export())
  exporter.start()
  await waitFor(() => exporter.counts.sent >= 1)
  expect(exporter.counts.failed).toBeGreaterThanOrEqual(2)
  expect(lines[0]).toContain('it did not answer within 200 ms')
})

test('closing does not wait for an unreachable collector, nor long for a slow one', async () => {
  // Its pauses would add up to an hour.
  const pauses = quickTimers(3600)
  const away = open({ endpoint: `http://127.0.0.1:${await freePort()}`, intervalMs: 600_000 }, { timers: pauses })
  away.exporter.start()
  const running = away.exporter.export()
  await waitFor(() => pauses.asked.length > 1)
  await away.exporter.close()
  await running
  expect(away.exporter.counts).toMatchObject({ sent: 0 })

  const slow = open({ intervalMs: 600_000, timeoutMs: 600_000 }, { timers: quickTimers(0.01) })
  collector.answers.push('none')
  slow.exporter.start()
  await slow.exporter.close()
  expect(slow.exporter.counts).toMatchObject({ sent: 0, failed: 1 })
  expect(slow.lines).toEqual([])
})

test('points that a collector rejects are counted, and reported once', async () => {
  const { exporter, lines } = open()
  const body = JSON.stringify({ partialSuccess: { rejectedDataPoints: '2', errorMessage: 'too old' } })
  collector.answers.push({ status: 200, body }, { status: 200, body }, { status: 200, body: 'not JSON' })
  for (let time = 0; time < 3; time++) await exporter.export()
  expect(exporter.counts).toEqual({ sent: 3, failed: 0, rejectedPoints: 4 })
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('too old')
})

test('metrics that cannot be read fail their export, and affect nothing else', async () => {
  let isBroken = true
  const collect = () => {
    if (isBroken) throw new Error('no figures')
    return families()
  }
  const { exporter, lines } = open({}, { collect })
  await exporter.export()
  expect(lines[0]).toContain('no figures')
  isBroken = false
  await exporter.export()
  expect(exporter.counts).toMatchObject({ sent: 1, failed: 1 })
})
