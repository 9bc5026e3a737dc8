import { encodeBinaryReport, formatTextReport, type Report, ReportRefusedError } from '@firebreak/core'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const rule = { id: 'r', prefix: 'k', threshold: 1000 }

function reportOf(hub: TestCore, changes: Partial<Report> = {}): Report {
  const now = hub.clock.now()
  const entries = [{ key: 'k1', count: 600, writes: 0, bytes: 0 }]
  return {
    collectTs: now,
    sendTs: now,
    serviceId: 'shop',
    hostId: 'h',
    instanceId: 'i',
    sections: [{ redisClusterId: 'main', entries }],
    ...changes,
  }
}

test('text and binary reports count alike', async () => {
  const hub = await TestCore.open([rule])
  hub.core.collector.collectBinary(encodeBinaryReport(reportOf(hub)), 0, 1)
  hub.core.collector.collectText(formatTextReport(reportOf(hub), 1), 1)
  expect(hub.entry('k1')?.reason).toContain('1,200/s')
  const second = await TestCore.open([{ ...rule, measure: 'writes' }])
  const entries = [{ key: 'k1', count: 2000, writes: 1100, bytes: 5 }]
  second.core.collector.collectText(
    formatTextReport(reportOf(second, { sections: [{ redisClusterId: 'main', entries }] }), 2),
    2,
  )
  expect(second.entry('k1')?.reason).toContain('1,100 writes/s')
})

test.each([
  ['unparsable', (hub: TestCore) => hub.core.collector.collectText('# 1,2,a', 1)],
  ['unparsable', (hub: TestCore) => hub.core.collector.collectBinary(Uint8Array.from([1, 2, 3]), 0, 1)],
  ['too-large', (hub: TestCore) => hub.core.collector.collectBinary(new Uint8Array(5000), 0, 1)],
  ['too-large', (hub: TestCore) => hub.core.collector.collectText('x'.repeat(5000), 1)],
  [
    'expired',
    (hub: TestCore) => {
      const { collectTs, sendTs } = reportOf(hub)
      const old = reportOf(hub, { collectTs: collectTs - 20_000, sendTs })
      hub.core.collector.collectBinary(encodeBinaryReport(old), 0, 1)
    },
  ],
] as const)('a report that is %s is refused and counted by that cause', async (cause, send) => {
  const hub = await TestCore.open([rule], { maxReportBytes: 4096 })
  expect(() => send(hub)).toThrow(ReportRefusedError)
  expect(hub.core.collector.refused).toEqual({ [cause]: 1 })
  expect(hub.core.collector.reportCount).toBe(0)
})

test('a report that breaks off in its last entry counts nothing of it', async () => {
  const hub = await TestCore.open([rule])
  const bytes = encodeBinaryReport(
    reportOf(hub, {
      sections: [
        {
          redisClusterId: 'main',
          entries: [
            { key: 'k1', count: 5000, writes: 0, bytes: 0 },
            { key: 'k2', count: 5000, writes: 0, bytes: 0 },
          ],
        },
      ],
    }),
  )
  expect(() => hub.core.collector.collectBinary(bytes.slice(0, -1), 0, 1)).toThrow('the binary report is truncated')
  expect([hub.entry('k1'), hub.core.engine.size]).toEqual([undefined, 0])
})

test('a report that comes twice counts once', async () => {
  const hub = await TestCore.open([rule])
  const bytes = encodeBinaryReport(reportOf(hub))
  hub.core.collector.collectBinary(bytes, 0, 7)
  hub.core.collector.collectBinary(bytes, 0, 7)
  expect(hub.entry('k1')).toBeUndefined()
  expect(hub.core.collector.refused).toEqual({ duplicate: 1 })
  // A process that starts counting over uses the numbers again, at other times.
  hub.clock.advance(10)
  hub.core.collector.collectBinary(encodeBinaryReport(reportOf(hub)), 0, 7)
  expect(hub.entry('k1')).toBeDefined()
})

test('a host whose clock is an hour off is counted in the right slice, and while its clock steps', async () => {
  for (const off of [3_600_000, -3_600_000]) {
    const hub = await TestCore.open([rule])
    for (let n = 0; n < 40; n++) {
      const skewed = hub.clock.now() + (n >= 20 ? off : 0)
      const counts = n === 39 ? { k1: 800 } : { k1: 20 }
      hub.report(counts, { collectTs: skewed, sendTs: skewed, instanceId: 'odd' })
      hub.report({ k2: 20 }, { instanceId: 'right' })
      hub.clock.advance(100)
    }
    expect(hub.core.collector.refused).toEqual({})
    // 9 × 20 + 800 lie in the last second, a little of it at its edge.
    const heat = hub.core.engine.get('main', 'k1')!.tracks[0]!.heat('accesses', hub.clock.now())
    expect(heat).toBeGreaterThan(900)
    expect(heat).toBeLessThanOrEqual(1000)
    const offset = [...hub.core.fleet.hosts.all()].find(({ instanceId }) => instanceId === 'odd')!.view(hub.clock.now())
    expect(offset.clockOffsetMs).toBe(-off)
  }
})

test('a report that was long on its way counts in the slice of its time', async () => {
  const hub = await TestCore.open([rule])
  hub.report({ k1: 1 })
  const sent = hub.clock.now()
  hub.clock.advance(1500)
  hub.report({ k1: 2000 }, { collectTs: sent, sendTs: sent })
  expect(hub.entry('k1')).toBeUndefined()
})

test('a key is not forgotten for cold ones while it is hot, and cold ones make room for each other', async () => {
  const hub = await TestCore.open([rule], { maxTrackedKeys: 100 })
  hub.report({ k1: 5000 })
  for (let n = 0; n < 50; n++) {
    hub.report(Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`cold-${n}-${index}`, 1])))
  }
  expect(hub.core.engine.size).toBe(100)
  expect(hub.entry('k1')).toBeDefined()
  expect(hub.phase('k1')).toBe('hot')
  expect(hub.core.engine.overflowCount).toBe(0)
})

test('idle keys are swept, step by step', async () => {
  const hub = await TestCore.open([rule])
  hub.report(Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`c${index}`, 1])))
  expect(hub.core.engine.size).toBe(3000)
  hub.clock.advance(15_000)
  expect(hub.core.engine.size).toBe(0)
})

test('many sensors are slowed, many entries are sampled, but never beyond what thresholds allow', async () => {
  const hub = await TestCore.open([{ id: 'r', prefix: 'k', threshold: 960 }], {
    maxReportsPerSecond: 10,
    maxEntriesPerSecond: 10,
  })
  for (let n = 0; n < 5; n++) hub.core.fleet.hosts.find('s', `h${n}`, `i${n}`, hub.clock.now())!.connections = 1
  hub.keepReporting(5000, Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`x${index}`, 1])))
  expect(hub.core.collector.governor.pace).toEqual({ intervalMs: 500, samplingFloor: 11 })
  hub.clock.advance(30_000)
  expect(hub.core.collector.governor.pace.samplingFloor).toBe(1)
})

test('a process that is busy slows its sensors, whatever keeps it busy, and lets them go when it is not', async () => {
  let load = 0.9
  const hub = await TestCore.open([rule], { loadOf: () => load, maxReportIntervalMs: 2000 })
  hub.clock.advance(3000)
  expect(hub.core.collector.governor.pace.intervalMs).toBe(338)
  hub.clock.advance(10_000)
  expect(hub.core.collector.governor.pace.intervalMs).toBe(2000)
  load = 0.6
  hub.clock.advance(10_000)
  expect(hub.core.collector.governor.pace.intervalMs).toBe(2000)
  load = 0.1
  hub.clock.advance(70_000)
  expect(hub.core.collector.governor.pace.intervalMs).toBe(100)
})

test('heat per slot is always there', async () => {
  const hub = await TestCore.open([])
  hub.clock.advance(1000 - (hub.clock.now() % 1000))
  hub.report({ foo: 30, bar: 20, '{foo}x': 5 })
  hub.clock.advance(1000)
  expect(hub.core.keys.slots.busiest(hub.clock.now(), 2)).toEqual([
    { redisClusterId: 'main', slot: 12_182, ratePerSecond: 35 },
    { redisClusterId: 'main', slot: 5061, ratePerSecond: 20 },
  ])
  hub.clock.advance(1000)
  expect(hub.core.keys.slots.busiest(hub.clock.now(), 2)).toEqual([])
})
