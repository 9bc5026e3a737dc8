import { type HistoryEvent, systemRuntime } from '@firebreak/core'
import { startOtlpCollector, waitFor } from '@firebreak/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { startHub } from '../start-hub.ts'
import { TestSensor } from '../testing/test-sensor.ts'
import { DecisionTraces, type OtlpSpan } from './decision-traces.ts'

const head = { resource: { 'service.name': 'hub' }, startTimeMs: 0, timeMs: 0 }
const event = (kind: HistoryEvent['kind'], at: number, more: Partial<HistoryEvent> = {}): HistoryEvent => ({
  at,
  kind,
  redisClusterId: 'main',
  key: 'product_1',
  ruleId: 'all',
  text: `${kind} at ${at}`,
  ...more,
})

function spansOf(request: object | undefined): readonly OtlpSpan[] {
  const { resourceSpans } = request as { resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[] }
  return resourceSpans[0]!.scopeSpans[0]!.spans
}

/** Names with where they begin and end, in milliseconds. */
const timesOf = (spans: readonly OtlpSpan[]) =>
  spans.map(({ name, startTimeUnixNano, endTimeUnixNano }) => [
    name,
    Number(startTimeUnixNano) / 1e6,
    Number(endTimeUnixNano) / 1e6,
  ])

test('steps are told as they end, the key when it has cooled, all in one trace', () => {
  const traces = new DecisionTraces(systemRuntime)
  expect(traces.request(head)).toBeUndefined()
  for (const [kind, at] of [
    ['hot', 1000],
    ['delivered', 1003],
    ['handled', 1010],
    ['handled', 1011],
  ] as const)
    traces.record(event(kind, at))
  const steps = spansOf(traces.request(head))
  expect(timesOf(steps)).toEqual([
    ['deliver', 1000, 1003],
    ['handle', 1003, 1010],
  ])
  traces.onTaken()
  traces.record(event('extended', 1500))
  expect(traces.request(head)).toBeUndefined()
  traces.record(event('cooled', 2000))
  const [root] = spansOf(traces.request(head))
  expect(timesOf([root!])).toEqual([['hot key', 1000, 2000]])
  for (const { traceId, parentSpanId } of steps) expect([traceId, parentSpanId]).toEqual([root!.traceId, root!.spanId])
  expect(root!.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(root!.spanId).toMatch(/^[0-9a-f]{16}$/)
  expect(root!.events!.map(({ name }) => name)).toEqual([
    'hot',
    'delivered',
    'handled',
    'handled',
    'extended',
    'cooled',
  ])
  const attributes = Object.fromEntries(root!.attributes.map(({ key, value }) => [key, value.stringValue]))
  expect(attributes).toMatchObject({
    'firebreak.key': 'product_1',
    'firebreak.rule': 'all',
    'firebreak.reason': 'hot at 1000',
    'firebreak.end': 'cooled',
  })
})

test('each time that a key is hot is a trace of its own, and so is each rule', () => {
  const traces = new DecisionTraces(systemRuntime)
  for (const ruleId of ['all', 'other'])
    for (const at of [1000, 5000])
      for (const kind of ['hot', 'cooled'] as const) traces.record(event(kind, at, { ruleId }))
  const spans = spansOf(traces.request(head))
  expect(spans.map(({ name }) => name)).toEqual(['hot key', 'hot key', 'hot key', 'hot key'])
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(4)
})

test('what a collector that is away has not taken is kept up to a bound, and the rest counted', () => {
  const traces = new DecisionTraces(systemRuntime)
  for (let index = 0; index < 6000; index++)
    for (const kind of ['hot', 'cooled'] as const) traces.record(event(kind, index))
  const spans = spansOf(traces.request(head))
  expect([spans.length, traces.dropped, Number(spans.at(-1)!.startTimeUnixNano) / 1e6]).toEqual([5000, 1000, 5999])
  // Two more come while those are under way: the oldest two go, and the newest two stay for the next request.
  for (const at of [6000, 6001]) for (const kind of ['hot', 'cooled'] as const) traces.record(event(kind, at))
  traces.onTaken()
  expect(timesOf(spansOf(traces.request(head)))).toEqual([
    ['hot key', 6000, 6000],
    ['hot key', 6001, 6001],
  ])
})

test('a hub that is asked to pushes its decisions', async () => {
  const collector = await startOtlpCollector()
  onTestFinished(() => collector.stop())
  const hub = await startHub({
    logLevel: 'silent',
    initialRules: [{ id: 'all', glob: '*', threshold: 100, strategy: 'LocalCache' }],
    otlp: { endpoint: collector.url, intervalMs: 50, traces: true },
  })
  onTestFinished(() => hub.close())
  const sensor = await TestSensor.connect(hub.url)
  onTestFinished(() => sensor.close())
  sensor.report({ product_1: 500 })
  const traced = () => collector.requests.filter(({ path }) => path === '/v1/traces')
  await waitFor(() => traced().length > 0)
  const [deliver] = spansOf(traced()[0]!.body)
  expect(deliver).toMatchObject({ name: 'deliver' })
  expect(deliver!.attributes[0]!.value.stringValue).toMatch(/^LocalCache sent to 1 sensor of shop$/)
})
