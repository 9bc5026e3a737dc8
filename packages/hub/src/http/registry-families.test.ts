import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { registryFamilies } from './registry-families.ts'

test('counters, gauges and histograms of a registry become families with the same figures', async () => {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'a_total', help: 'A', labelNames: ['cause'], registers }).inc({ cause: 'x' }, 3)
  new Gauge({ name: 'b', help: 'B', registers }).set(-2)
  new Gauge({ name: 'none', help: 'N', labelNames: ['x'], registers })
  const times = new Histogram({ name: 'c', help: 'C', labelNames: ['kind'], buckets: [1, 10], registers })
  for (const time of [0.5, 1, 5, 7, 20]) times.observe({ kind: 'gc' }, time)
  times.observe({ kind: 'other' }, 3)
  expect(await registryFamilies(registry)).toEqual([
    { kind: 'counter', name: 'a_total', help: 'A', points: [{ labels: { cause: 'x' }, value: 3 }] },
    { kind: 'gauge', name: 'b', help: 'B', points: [{ labels: {}, value: -2 }] },
    { kind: 'gauge', name: 'none', help: 'N', points: [] },
    {
      kind: 'histogram',
      name: 'c',
      help: 'C',
      points: [
        { labels: { kind: 'gc' }, count: 5, sum: 33.5, bounds: [1, 10], bucketCounts: [2, 2, 1] },
        { labels: { kind: 'other' }, count: 1, sum: 3, bounds: [1, 10], bucketCounts: [0, 1, 0] },
      ],
    },
  ])
})
