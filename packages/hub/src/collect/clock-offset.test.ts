import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClockOffset } from './clock-offset.ts'

const hour = 3_600_000

/** Sends a report every 100 ms: `skew(n)` is the sensor's clock minus the hub's, `way(n)` the time on the way. */
function ages(count: number, skew: (n: number) => number, way: (n: number) => number = () => 5): number[] {
  const clock = new ClockOffset()
  return Array.from({ length: count }, (_, n) => {
    const sentAt = 1_700_000_000_000 + n * 100
    const sendTs = sentAt + skew(n)
    return clock.ageMs(sendTs - 20, sendTs, sentAt + way(n))
  })
}

test('a clock that is an hour off, either way, makes no report old', () => {
  for (const off of [hour, -hour]) expect(Math.max(...ages(50, () => off))).toBeLessThan(100)
})

test('the time on the way counts, against the fastest of late', () => {
  const seen = ages(
    50,
    () => hour,
    (n) => (n === 30 ? 4000 : 5),
  )
  expect(seen[30]).toBeCloseTo(20 + 3995)
  expect(seen[31]).toBeCloseTo(20)
})

test('a clock that steps, forward or back, makes no report old', () => {
  for (const step of [hour, -hour, 3000, -3000]) {
    expect(Math.max(...ages(100, (n) => (n >= 50 ? step : 0)))).toBeLessThan(300)
  }
})

test('a step forward inside an interval is not the age of its report', () => {
  const clock = new ClockOffset()
  for (let n = 0; n < 10; n++) clock.ageMs(n * 100, n * 100, n * 100 + 5)
  // Collected before the step, sent after it.
  expect(clock.ageMs(1000, 1020 + hour, 1025)).toBeLessThan(100)
})

test('a report that really waited in the sensor is old', () => {
  const clock = new ClockOffset()
  for (let n = 0; n < 10; n++) clock.ageMs(n * 100, n * 100, n * 100 + 5)
  expect(clock.ageMs(1000, 9000, 9005)).toBeCloseTo(8000)
})

test('a slow drift is followed, since old samples are forgotten', () => {
  // A way that grows for good by 400 ms: after the window it is the new normal.
  const seen = ages(
    1000,
    () => 0,
    (n) => (n < 100 ? 5 : 405),
  )
  expect(seen[110]).toBeGreaterThan(400)
  expect(seen[999]).toBeLessThan(100)
})

test('whatever the clock does, ages are finite and not negative', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(2 ** 41), fc.nat(2 ** 41), fc.nat(10_000))), (messages) => {
      const clock = new ClockOffset()
      let now = 1_700_000_000_000
      for (const [collectTs, sendTs, pause] of messages) {
        now += pause
        expect(clock.ageMs(collectTs, sendTs, now)).toBeGreaterThanOrEqual(0)
      }
    }),
  )
})
