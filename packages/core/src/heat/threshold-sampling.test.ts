import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { hotSamplingFactor, maxSamplingFactor, nextSamplingFactor, ThresholdSampler } from './threshold-sampling.ts'

/** The standard deviation of a sum of `count` accesses that were sampled one by one. */
const samplingDeviation = (count: number, factor: number) => Math.sqrt(count * (factor - 1))

/** The sampler with given random draws: the first decides about sending, all others about rounding. */
function sampleWith(first: number, second: number, row: Row): ThresholdSampler {
  let isFirst = true
  const sampler = new ThresholdSampler(() => {
    const draw = isFirst ? first : second
    isFirst = false
    return draw
  })
  sampler.factor = row.numerator / row.denominator
  sampler.sample(row.count, row.writes, row.bytes)
  return sampler
}

interface Row {
  readonly count: number
  readonly writes: number
  readonly bytes: number
  readonly numerator: number
  readonly denominator: number
}

const anyRow = fc.integer({ min: 1, max: 15 }).chain(
  (count): fc.Arbitrary<Row> =>
    fc.record({
      count: fc.constant(count),
      writes: fc.integer({ min: 0, max: count }),
      bytes: fc.nat(1000),
      numerator: fc.integer({ min: 4, max: 48 }),
      denominator: fc.constantFrom(1, 2, 4),
    }),
)

test('on average the amounts sent equal those counted: accesses, writes and bytes, for any factor', () => {
  fc.assert(
    fc.property(anyRow, (row) => {
      // Draws on a grid that all the fractions divide: their mean is the exact expected value.
      const steps = row.numerator * row.denominator * row.count
      const grid = Array.from({ length: steps }, (_, step) => (step + 0.5) / steps)
      const sentShare = grid.filter((first) => sampleWith(first, 0, row).count > 0).length / steps
      const mean = { count: 0, writes: 0, bytes: 0 }
      for (const second of grid) {
        const { count, writes, bytes } = sampleWith(0, second, row)
        if (writes > count) throw new Error('more writes than accesses')
        mean.count += (count * sentShare) / steps
        mean.writes += (writes * sentShare) / steps
        mean.bytes += (bytes * sentShare) / steps
      }
      expect(mean.count).toBeCloseTo(row.count, 9)
      expect(mean.writes).toBeCloseTo(row.writes, 9)
      expect(mean.bytes).toBeCloseTo(row.bytes, 6)
      expect(sentShare).toBeCloseTo(Math.min(1, (row.count * row.denominator) / row.numerator), 9)
    }),
    { numRuns: scale(100, 1000) },
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
  // 4.6 % of a normal distribution is beyond two deviations.
  expect(beyond / windows).toBeLessThan(0.09)
})

test('the factor is bounded by the lowest threshold', () => {
  expect([0, 48, 96, 240, 960].map(maxSamplingFactor)).toEqual([1, 1.5, 2, 3.5, 11])
  expect(maxSamplingFactor(Number.POSITIVE_INFINITY)).toBe(1)
  expect(nextSamplingFactor({ factor: 2, rows: 500, maxRows: 20, lowestThreshold: 96 })).toBe(2)
})

test('the factor settles at the rows that the hub can take, and at 1 if it can take all', () => {
  const counts = [...Array.from({ length: 40 }, () => 1), 2, 2, 2, 3, 5, 9, 50]
  const rowsAt = (factor: number) => counts.reduce((sum, count) => sum + Math.min(1, count / factor), 0)
  const settle = (maxRows: number, lowestThreshold: number) => {
    let factor = maxSamplingFactor(lowestThreshold)
    for (let interval = 0; interval < 30; interval++) {
      factor = nextSamplingFactor({ factor, rows: rowsAt(factor), maxRows, lowestThreshold })
    }
    return factor
  }
  expect(rowsAt(settle(20, 2000))).toBeCloseTo(20, 1)
  expect(rowsAt(settle(8, 2000))).toBeCloseTo(8, 1)
  expect(settle(20, 96)).toBe(2)
  expect(settle(47, 2000)).toBe(1)
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

test('a hot key is sampled at a lower rate only if its exit level leaves room for it', () => {
  const level = { measure: 'accesses', enter: 100, exit: 70 }
  expect(hotSamplingFactor(3, [level])).toBe(4)
  expect(hotSamplingFactor(1, [level])).toBe(1)
  expect(hotSamplingFactor(3, [{ ...level, exit: 90 }])).toBe(3)
  expect(hotSamplingFactor(3, [{ ...level, measure: 'writes' }])).toBe(3)
  expect(hotSamplingFactor(3, [{ ...level, enterShare: 0.1 }])).toBe(3)
  const next = (enter: number) => ({ measure: 'accesses', enter, exit: enter * 0.7 })
  expect(hotSamplingFactor(3, [level, next(150)])).toBe(4)
  expect(hotSamplingFactor(3, [level, next(149)])).toBe(3)
  // At the bound itself, 1.5 · T, the exit level is more than four standard deviations away, for any threshold.
  for (const enter of [96, 131, 1000, 50_000]) {
    const factor = hotSamplingFactor(maxSamplingFactor(enter), [{ measure: 'accesses', enter, exit: 0.8 * enter }])
    expect((1.5 * enter - 0.8 * enter) / samplingDeviation(1.5 * enter, factor)).toBeGreaterThan(4)
  }
})
