import { expect, test } from 'vitest'
import type { MetricFamily } from './metric-family.ts'
import { type BatchResultLike, type MeterLike, type ObservableLike, observeWithMeter } from './observe-with-meter.ts'

/** A meter that remembers what was registered and can be asked to collect. */
function fakeMeter() {
  const names = new Map<ObservableLike, string>()
  const callbacks = new Map<(result: BatchResultLike) => void, ObservableLike[]>()
  const create = (kind: string) => (name: string, options?: { description?: string }) => {
    const instrument = { addCallback() {} }
    names.set(instrument, `${kind} ${name}: ${options?.description}`)
    return instrument
  }
  const meter: MeterLike = {
    createObservableGauge: create('gauge'),
    createObservableCounter: create('counter'),
    addBatchObservableCallback: (callback, instruments) => void callbacks.set(callback, instruments),
    removeBatchObservableCallback: (callback) => void callbacks.delete(callback),
  }
  const collect = () => {
    const seen: unknown[] = []
    for (const [callback, instruments] of callbacks) {
      callback({
        observe: (instrument, value, labels) => {
          if (instruments.includes(instrument)) seen.push([names.get(instrument), value, labels])
        },
      })
    }
    return seen
  }
  return { meter, names, collect }
}

test('families become observable instruments that are read when the meter collects', () => {
  let hits = 1
  let reads = 0
  const read = (): MetricFamily[] => {
    reads++
    return [
      { kind: 'counter', name: 'hits_total', help: 'Hits', points: [{ labels: { cluster: 'a' }, value: hits }] },
      { kind: 'gauge', name: 'hot', help: 'Hot keys', points: hits > 1 ? [{ labels: {}, value: 4 }] : [] },
      {
        kind: 'histogram',
        name: 'ms',
        help: 'Times',
        points: [{ labels: {}, count: 2, sum: 5, bounds: [1], bucketCounts: [0, 2] }],
      },
    ]
  }
  const { meter, names, collect } = fakeMeter()
  const end = observeWithMeter(meter, read)
  expect([...names.values()]).toEqual([
    'counter hits_total: Hits',
    'gauge hot: Hot keys',
    'counter ms_count: Times: count',
    'counter ms_sum: Times: sum',
  ])
  const times = [
    ['counter ms_count: Times: count', 2, {}],
    ['counter ms_sum: Times: sum', 5, {}],
  ]
  expect(collect()).toEqual([['counter hits_total: Hits', 1, { cluster: 'a' }], ...times])
  hits = 7
  expect(collect()).toEqual([
    ['counter hits_total: Hits', 7, { cluster: 'a' }],
    ['gauge hot: Hot keys', 4, {}],
    ...times,
  ])
  expect(reads).toBe(3)
  end()
  expect(collect()).toEqual([])
})
