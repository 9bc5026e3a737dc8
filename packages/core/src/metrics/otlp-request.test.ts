import { expect, test } from 'vitest'
import type { MetricFamily } from './metric-family.ts'
import { otlpRequest } from './otlp-request.ts'

const head = { resource: { 'service.name': 'hub' }, startTimeMs: 1_700_000_000_000, timeMs: 1_700_000_001_234.5 }
const start = '1700000000000000000'
const time = '1700000001234500000'

const families: MetricFamily[] = [
  { kind: 'counter', name: 'a_total', help: 'A', points: [{ labels: { cause: 'x' }, value: 3 }] },
  {
    kind: 'gauge',
    name: 'b',
    help: 'B',
    points: [
      { labels: {}, value: -1.5 },
      { labels: { q: '1' }, value: Number.NaN },
    ],
  },
  {
    kind: 'histogram',
    name: 'c_ms',
    help: 'C',
    points: [{ labels: { command: 'GET' }, count: 6, sum: 12.5, bounds: [1, 2], bucketCounts: [1, 2, 3] }],
  },
  { kind: 'gauge', name: 'empty', help: 'E', points: [] },
]

test('counters, gauges and histograms have the form of OTLP, with 64-bit numbers as strings', () => {
  expect(otlpRequest(families, head)).toEqual({
    resourceMetrics: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'hub' } }] },
        scopeMetrics: [
          {
            scope: { name: 'firebreak' },
            metrics: [
              {
                name: 'a_total',
                description: 'A',
                sum: {
                  aggregationTemporality: 2,
                  isMonotonic: true,
                  dataPoints: [
                    {
                      attributes: [{ key: 'cause', value: { stringValue: 'x' } }],
                      startTimeUnixNano: start,
                      timeUnixNano: time,
                      asDouble: 3,
                    },
                  ],
                },
              },
              {
                name: 'b',
                description: 'B',
                gauge: { dataPoints: [{ attributes: [], timeUnixNano: time, asDouble: -1.5 }] },
              },
              {
                name: 'c_ms',
                description: 'C',
                histogram: {
                  aggregationTemporality: 2,
                  dataPoints: [
                    {
                      attributes: [{ key: 'command', value: { stringValue: 'GET' } }],
                      startTimeUnixNano: start,
                      timeUnixNano: time,
                      count: '6',
                      sum: 12.5,
                      bucketCounts: ['1', '2', '3'],
                      explicitBounds: [1, 2],
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
  })
})
