import { expect, test } from 'vitest'
import { StrategyTrials } from './strategy-trials.ts'

test('a cache that answers next to nothing is given up after its trial, and not tried again for a while', () => {
  const trials = new StrategyTrials()
  const useless = { reads: 5000, helped: 50, errors: 0 }
  expect(trials.judge('c', 'k', 'LocalCache', 1000, useless, 0)).toBe(undefined)
  expect(trials.judge('c', 'k', 'LocalCache', 9000, useless, 0)?.why).toBe(
    'LocalCache is rolled back: it answered only 1.0 % of 5000 reads',
  )
  expect(trials.isGivenUp('c', 'k', 'LocalCache', 1000)).toBe(true)
  expect(trials.isGivenUp('c', 'other', 'LocalCache', 1000)).toBe(false)
  expect(trials.isGivenUp('c', 'k', 'LocalCache', 700_000)).toBe(false)
})

test('one that helps, and one without reads to judge by, stays', () => {
  const trials = new StrategyTrials()
  expect(trials.judge('c', 'k', 'LocalCache', 9000, { reads: 5000, helped: 4500, errors: 0 }, 0)).toBe(undefined)
  expect(trials.judge('c', 'k', 'LocalCache', 9000, { reads: 3, helped: 0, errors: 0 }, 0)).toBe(undefined)
})

test('one that raises errors is given up, whatever it is', () => {
  const trials = new StrategyTrials()
  expect(trials.judge('c', 'k', 'RedundantKeys', 9000, { reads: 1000, helped: 1000, errors: 100 }, 0)?.why).toContain(
    '100 errors',
  )
  expect(trials.isGivenUp('c', 'k', 'RedundantKeys', 1)).toBe(true)
})
