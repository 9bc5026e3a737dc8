import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeBinaryReport } from '../report/binary-report.ts'
import { type Report, ReportRefusedError } from '../report/report.ts'
import { HeatWindow } from './heat-window.ts'
import { HostNumbers } from './host-numbers.ts'
import { Ingest, type IngestOptions } from './ingest.ts'
import { SlidingTotals } from './sliding-totals.ts'

const startMs = 1_700_000_000_000

function makeIngest(options: Partial<IngestOptions> = {}) {
  const hot: string[] = []
  const ingest = new Ingest({
    makeWindow(scope, nowMs) {
      const thresholds = { levels: [{ enter: 100, exit: 70 }], minHoldMs: 0 }
      const window: HeatWindow = new HeatWindow({
        rules: { rules: [{ windowMs: 1000, thresholds }], match: () => 0 },
        startMs: nowMs,
        onChange: ({ index, after }) => hot.push(`${scope} ${window.keyOf(index)} ${after.phase}`),
      })
      return window
    },
    ...options,
  })
  const heat = (scope: string, key: string) => {
    const window = ingest.windows.get(scope)!
    const index = window.find(Buffer.from(key))
    return index < 0 ? 0 : window.heatOf(index)
  }
  return { ingest, hot, heat }
}

const report = (sections: Report['sections'], about: Partial<Report> = {}): Uint8Array =>
  encodeBinaryReport({
    collectTs: startMs,
    sendTs: startMs,
    serviceId: 'shop',
    hostId: 'host-1',
    instanceId: 'one',
    sections,
    ...about,
  })

const entry = (key: string, count: number, writes = 0, bytes = 0) => ({ key, count, writes, bytes })

test('any reports leave in the windows what their entries sum up to', () => {
  const entries = fc.array(
    fc.record({
      key: fc.oneof(
        fc.nat(200).map((id) => `k${id}`),
        fc.string(),
      ),
      count: fc.integer({ min: 1, max: 500 }),
    }),
    { maxLength: 200 },
  )
  fc.assert(
    fc.property(fc.array(fc.record({ cluster: fc.constantFrom('a', 'b'), entries }), { maxLength: 6 }), (sections) => {
      const { ingest, heat } = makeIngest()
      const exact = new Map<string, number>()
      const all = sections.map((section) => ({
        redisClusterId: section.cluster,
        entries: section.entries.map(({ key, count }) => {
          const id = `${section.cluster} ${key}`
          exact.set(id, (exact.get(id) ?? 0) + count)
          return entry(key, count)
        }),
      }))
      ingest.take(report(all), startMs)
      for (const [id, count] of exact) expect(heat(id[0]!, id.slice(2))).toBe(count)
      expect(ingest.counters.entries).toBe(all.reduce((sum, section) => sum + section.entries.length, 0))
    }),
    { numRuns: scale(60, 600) },
  )
})

test('a crossing is told as the report arrives that causes it, summed over hosts', () => {
  const { ingest, hot } = makeIngest()
  for (let host = 0; host < 25; host++) {
    expect(hot).toEqual([])
    ingest.take(report([{ redisClusterId: 'c', entries: [entry('k', 4, 1, 10)] }], { hostId: `host-${host}` }), startMs)
  }
  expect(hot).toEqual(['c k hot'])
  ingest.take(report([{ redisClusterId: 'c', entries: [entry('k', 50)] }], { hostId: 'host-24' }), startMs)
  const window = ingest.windows.get('c')!
  const [first] = window.details(window.find(Buffer.from('k')), 3)!.hosts
  expect(ingest.hosts.nameOf(first!.host)).toBe('shop/host-24')
  ingest.evaluate(startMs + 5000)
  expect(hot).toEqual(['c k hot', 'c k cold'])
})

test('totals of services and clusters hold what was sampled away too', () => {
  const { ingest } = makeIngest()
  const sections = [{ redisClusterId: 'c', totalCount: 900, entries: [entry('k', 4)] }]
  ingest.take(report(sections), startMs)
  ingest.take(report(sections, { serviceId: 'search' }), startMs + 500)
  expect([...ingest.services.all(startMs + 600)]).toEqual([
    ['shop', 900],
    ['search', 900],
  ])
  expect(ingest.clusters.of('c', startMs + 600)).toBe(1800)
  expect(ingest.clusters.of('c', startMs + 1100)).toBe(900)
  expect(ingest.services.of('shop', startMs + 5000)).toBe(0)
})

test('services with rules of their own have windows of their own', () => {
  const { ingest, heat } = makeIngest({
    scopeOf: (cluster, service) => (service === 'search' ? `${cluster}/search` : cluster),
  })
  const sections = [{ redisClusterId: 'c', entries: [entry('k', 4)] }]
  for (const serviceId of ['shop', 'pay', 'search']) ingest.take(report(sections, { serviceId }), startMs)
  expect([heat('c', 'k'), heat('c/search', 'k')]).toEqual([8, 4])
})

describe('refusals', () => {
  test('a report that breaks off is refused whole', () => {
    const { ingest } = makeIngest()
    const bytes = report([{ redisClusterId: 'c', entries: [entry('a', 4), entry('b', 4)] }])
    for (let length = 0; length < bytes.length; length++) {
      expect(() => ingest.take(bytes.subarray(0, length), startMs)).toThrow(ReportRefusedError)
    }
    expect(ingest.windows.size).toBe(0)
    expect(ingest.counters).toEqual({ reports: 0, entries: 0, refusedEntries: 0 })
  })

  test('entries of a scope that is refused, or one too many, are counted', () => {
    const { ingest, heat } = makeIngest({ maxScopes: 1 })
    const sections = ['a', 'b'].map((redisClusterId) => ({ redisClusterId, entries: [entry('k', 4), entry('l', 5)] }))
    expect(ingest.take(report(sections), startMs)).toBe(4)
    expect(heat('a', 'k')).toBe(4)
    expect(ingest.windows.has('b')).toBe(false)
    expect(ingest.counters.refusedEntries).toBe(2)
  })
})

test('hosts have numbers; a host that was silent for long makes room for a new one', () => {
  const hosts = new HostNumbers({ maxHosts: 2, idleMs: 1000 })
  expect([hosts.numberOf('a', 0), hosts.numberOf('b', 500), hosts.numberOf('a', 600)]).toEqual([0, 1, 0])
  expect(hosts.numberOf('c', 700)).toBe(-1)
  expect(hosts.numberOf('c', 1710)).toBe(0 + 1)
  expect([hosts.nameOf(0), hosts.nameOf(1), hosts.size]).toEqual(['a', 'c', 2])
})

test('names beyond the bound are summed under one; silent ones make room', () => {
  const totals = new SlidingTotals({ windowMs: 1000, maxNames: 2 })
  totals.add('a', 1, 0)
  totals.add('b', 2, 0)
  totals.add('c', 4, 100)
  totals.add('d', 8, 100)
  expect([...totals.all(100)]).toEqual([
    ['a', 1],
    ['b', 2],
    ['', 12],
  ])
  totals.add('e', 16, 5000)
  expect([...totals.all(5000)]).toEqual([['e', 16]])
})
