import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { maxSamplingFactor, samplingDeviation, samplingFactorFor, ThresholdSampler } from './threshold-sampling.ts'

/** Equidistant "random" numbers: their mean over a whole turn is exact, so unbiasedness can be proved, not guessed. */
function sampled(count: number, writes: number, bytes: number, factor: number, steps: number) {
  const sums = { count: 0, writes: 0, bytes: 0, sent: 0 }
  for (let first = 0; first < steps; first++) {
    for (let second = 0; second < (count < factor ? steps : 1); second++) {
      const draws = [first, second, second]
      const sampler = new ThresholdSampler(() => (draws.shift()! + 0.5) / steps)
      sampler.factor = factor
      if (sampler.sample(count, writes, bytes)) sums.sent++
      sums.count += sampler.count
      sums.writes += sampler.writes
      sums.bytes += sampler.bytes
      if (sampler.writes > sampler.count) throw new Error('more writes than accesses')
    }
  }
  const runs = steps * (count < factor ? steps : 1)
  return { count: sums.count / runs, writes: sums.writes / runs, bytes: sums.bytes / runs, sent: sums.sent / runs }
}

test('what is sent is on average what was counted: accesses, writes and bytes, for any factor', () => {
  const row = fc.integer({ min: 1, max: 15 }).chain((count) =>
    fc.record({
      count: fc.constant(count),
      writes: fc.integer({ min: 0, max: count }),
      bytes: fc.nat(1000),
      factor: fc.integer({ min: 1, max: 12 }),
    }),
  )
  fc.assert(
    fc.property(row, ({ count, writes, bytes, factor }) => {
      // Over all draws of a grid that both the count and the factor divide, the mean is exact.
      const steps = count < factor ? count * factor : 4
      const mean = sampled(count, writes, bytes, factor, steps)
      expect(mean.count).toBeCloseTo(count, 9)
      expect(mean.writes).toBeCloseTo(writes, 9)
      expect(mean.bytes).toBeCloseTo(bytes, 9)
      if (count < factor) expect(mean.sent).toBeCloseTo(count / factor, 9)
    }),
    { numRuns: scale(60, 500) },
  )
})

test('a sum over many hosts that each saw one access stays within its deviation', () => {
  const sampler = new ThresholdSampler(seeded(7))
  sampler.factor = 5
  let beyond = 0
  const windows = 400
  const deviation = samplingDeviation(1000, 5)
  for (let window = 0; window < windows; window++) {
    let sum = 0
    for (let host = 0; host < 1000; host++) if (sampler.sample(1, 0, 0)) sum += sampler.count
    if (Math.abs(sum - 1000) > 2 * deviation) beyond++
  }
  expect(deviation).toBeCloseTo(63.2, 1)
  // 4.6 % of a normal distribution lies beyond two deviations.
  expect(beyond / windows).toBeLessThan(0.09)
})

test('the factor is bounded by the lowest threshold, and no larger than the row budget asks for', () => {
  expect([50, 95, 96, 250, 960].map(maxSamplingFactor)).toEqual([1, 1, 2, 3, 11])
  expect(maxSamplingFactor(Number.POSITIVE_INFINITY)).toBe(1)
  expect(samplingFactorFor(50, 20, 250)).toBe(3)
  expect(samplingFactorFor(50, 20, 96)).toBe(2)
  expect(samplingFactorFor(10, 20, 10_000)).toBe(1)
})

test('with a factor of one everything is sent as it is', () => {
  const sampler = new ThresholdSampler(() => 0.999)
  expect(sampler.sample(1, 1, 17)).toBe(true)
  expect([sampler.count, sampler.writes, sampler.bytes]).toEqual([1, 1, 17])
  expect(() => {
    sampler.factor = 0.5
  }).toThrow(InvalidOptionError)
})

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}
