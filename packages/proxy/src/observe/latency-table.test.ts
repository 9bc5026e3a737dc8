import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LatencyTable, latencyBoundsMs } from './latency-table.ts'

test('quantiles are within a fifth of the exact ones', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.01, max: 60_000, noNaN: true }), { minLength: 1, maxLength: 300 }),
      (times) => {
        const table = new LatencyTable()
        for (const time of times) table.record(7, time)
        const [id, summary] = [...table.summaries()][0]!
        const sorted = [...times].sort((a, b) => a - b)
        const exact = (share: number) => sorted[Math.ceil(sorted.length * share) - 1]!
        expect(id).toBe(7)
        expect(summary.count).toBe(times.length)
        expect(summary.maxMs).toBe(sorted.at(-1))
        for (const [share, value] of [
          [0.5, summary.p50Ms],
          [0.99, summary.p99Ms],
        ] as const) {
          expect(value).toBeGreaterThanOrEqual(exact(share) * 0.999)
          expect(value).toBeLessThanOrEqual(exact(share) * 1.2)
        }
      },
    ),
  )
})

test('a command that was never used is not listed', () => {
  const table = new LatencyTable()
  table.record(3, 1)
  expect([...table.summaries()].map(([id]) => id)).toEqual([3])
})

test('a histogram puts every time into the bucket whose bounds are around it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 200_000, noNaN: true }), { minLength: 1, maxLength: 200 }),
      (times) => {
        const table = new LatencyTable()
        for (const time of times) table.record(7, time)
        const [[commandId, { count, sumMs, bucketCounts }]] = [...table.histograms()] as [
          [number, { count: number; sumMs: number; bucketCounts: readonly number[] }],
        ]
        expect([commandId, count]).toEqual([7, times.length])
        expect(sumMs).toBeCloseTo(times.reduce((sum, time) => sum + time, 0))
        // Below this, times are exact to the microsecond.
        const expected = new Array<number>(latencyBoundsMs.length + 1).fill(0)
        for (const time of times) {
          const whole = Math.floor(time * 1000) / 1000
          const bucket = latencyBoundsMs.findIndex((end) => whole < end)
          expected[bucket === -1 ? latencyBoundsMs.length : bucket]!++
        }
        expect(bucketCounts).toEqual(expected)
      },
    ),
  )
})
