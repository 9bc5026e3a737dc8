import { expect, test } from 'vitest'
import { estimateAccessRate } from './access-rate.ts'

/** The server's counter, second by second, computed as in its source. */
function simulate(perSecond: number, seconds: number, seed: number): number[] {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  const counters: number[] = []
  let counter = 5
  for (let second = 1; second <= seconds; second++) {
    for (let access = 0; access < perSecond; access++) {
      const base = Math.max(0, counter - 5)
      if (counter < 255 && random() < 1 / (base * 10 + 1)) counter++
    }
    if (second % 60 === 0 && counter > 0) counter--
    counters.push(counter)
  }
  return counters
}

test('the rate of a steady key is derived from its counter alone, within its error', () => {
  let inside = 0
  for (let seed = 1; seed <= 20; seed++) {
    const counters = simulate(4, 4 * 3600, seed)
    const { accessesPerSecond, relativeError } = estimateAccessRate(counters.at(-1)!)
    expect(relativeError).toBeLessThan(0.25)
    if (Math.abs(accessesPerSecond - 4) <= 3 * relativeError * accessesPerSecond) inside++
  }
  expect(inside).toBeGreaterThanOrEqual(18)
})

test('the rate of a key that just became hot is derived from the growth of its counter', () => {
  let inside = 0
  for (let seed = 1; seed <= 20; seed++) {
    const counters = simulate(2000, 30, seed)
    const steps = counters[29]! - counters[24]!
    const estimate = estimateAccessRate(counters[27]!, undefined, { steps, seconds: 5 })
    if (Math.abs(estimate.accessesPerSecond - 2000) <= 3 * estimate.relativeError * 2000) inside++
    // The counter alone would be far off.
    expect(estimateAccessRate(counters[29]!).accessesPerSecond).toBeLessThan(100)
  }
  expect(inside).toBeGreaterThanOrEqual(18)
})

test('a full counter, a fresh key and a counter that never decays report how uncertain they are', () => {
  expect(estimateAccessRate(255).relativeError).toBe(Number.POSITIVE_INFINITY)
  expect(estimateAccessRate(5).relativeError).toBe(1)
  expect(estimateAccessRate(50, { logFactor: 10, decayMinutes: 0 })).toEqual({ accessesPerSecond: 0, relativeError: 1 })
})
