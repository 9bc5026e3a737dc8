import { expect, test } from 'vitest'
import { prometheusText } from './prometheus-text.ts'

test('counters, gauges and histograms have the lines that Prometheus reads', () => {
  const text = prometheusText([
    {
      kind: 'counter',
      name: 'calls_total',
      help: 'Calls\nby limit',
      points: [{ labels: { limit: 'a "b"\\\n', outcome: 'denied' }, value: 2 }],
    },
    {
      kind: 'gauge',
      name: 'hot',
      help: 'Hot',
      points: [
        { labels: {}, value: 1.5 },
        { labels: { q: '1' }, value: Number.NaN },
        { labels: { q: '2' }, value: Number.NEGATIVE_INFINITY },
      ],
    },
    {
      kind: 'histogram',
      name: 'wait_ms',
      help: 'Wait',
      points: [{ labels: { kind: 'x' }, count: 6, sum: 12.5, bounds: [1, 2], bucketCounts: [1, 2, 3] }],
    },
    { kind: 'gauge', name: 'none', help: 'None', points: [] },
  ])
  expect(text).toBe(String.raw`# HELP calls_total Calls\nby limit
# TYPE calls_total counter
calls_total{limit="a \"b\"\\\n",outcome="denied"} 2
# HELP hot Hot
# TYPE hot gauge
hot 1.5
hot{q="1"} NaN
hot{q="2"} -Inf
# HELP wait_ms Wait
# TYPE wait_ms histogram
wait_ms_bucket{kind="x",le="1"} 1
wait_ms_bucket{kind="x",le="2"} 3
wait_ms_bucket{kind="x",le="+Inf"} 6
wait_ms_sum{kind="x"} 12.5
wait_ms_count{kind="x"} 6
# HELP none None
# TYPE none gauge
`)
  expect(prometheusText([])).toBe('')
})
