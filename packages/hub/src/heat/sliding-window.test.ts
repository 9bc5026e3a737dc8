import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SlidingWindow } from './sliding-window.ts'

const startMs = 1_700_000_000_123

test('the sum is what an exact count gives, the oldest slice by the part of it that is still in the window', () => {
  // Reports come late and out of order, by less than a window or more.
  const step = fc.record({ ms: fc.nat(700), lateMs: fc.oneof(fc.constant(0), fc.nat(2500)), count: fc.nat(100) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.constantFrom(500, 1000, 4000), (steps, windowMs) => {
      const window = new SlidingWindow(windowMs)
      const sliceMs = windowMs / 10
      const log: { tick: number; count: number }[] = []
      let now = startMs
      let head = 0
      for (const { ms, lateMs, count } of steps) {
        now += ms
        const tick = Math.floor((now - lateMs) / sliceMs)
        head = Math.max(head, tick)
        window.add(now - lateMs, count)
        // What is older than the ring at its time is never counted.
        if (tick > head - 11) log.push({ tick, count })
        head = Math.max(head, Math.floor(now / sliceMs))
        const passed = now / sliceMs - head
        const exact = log
          .filter((entry) => entry.tick > head - 11)
          .reduce((sum, entry) => sum + entry.count * (entry.tick === head - 10 ? 1 - passed : 1), 0)
        expect(window.sum(now)).toBeCloseTo(exact, 6)
        const { headAgeMs, counts } = window.slices(now)
        expect(headAgeMs).toBeCloseTo(now - head * sliceMs, 6)
        expect(counts).toHaveLength(11)
        for (const [age, sum] of counts.entries()) {
          const inSlice = log.filter((entry) => entry.tick === head - age).reduce((all, entry) => all + entry.count, 0)
          expect(sum).toBe(inSlice)
        }
      }
    }),
    { numRuns: scale(100, 1000) },
  )
})
