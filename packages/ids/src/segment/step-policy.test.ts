import fc from 'fast-check'
import { expect, test } from 'vitest'
import { maxStep, nextStep } from './step-policy.ts'

const minute = 60_000

test('the step doubles under 15 minutes, halves over 30, and stays between', () => {
  expect(nextStep(1000, 100, 15 * minute - 1)).toBe(2000)
  expect(nextStep(1000, 100, 15 * minute)).toBe(1000)
  expect(nextStep(1000, 100, 30 * minute)).toBe(1000)
  expect(nextStep(1000, 100, 30 * minute + 1)).toBe(500)
})

test('it grows to a million and shrinks to the table’s step', () => {
  let step = 100
  for (let load = 0; load < 30; load++) step = nextStep(step, 100, 0)
  expect(step).toBe(maxStep)
  for (let load = 0; load < 30; load++) step = nextStep(step, 100, 60 * minute)
  expect(step).toBe(100)
})

test('it is never below the table’s step, and above a million only if the table says so', () => {
  fc.assert(
    fc.property(
      fc.nat(5_000_000),
      fc.integer({ min: 1, max: 5_000_000 }),
      fc.nat(60 * minute),
      (step, table, lasted) => {
        const next = nextStep(Math.max(step, table), table, lasted)
        expect(next).toBeGreaterThanOrEqual(table)
        expect(next).toBeLessThanOrEqual(Math.max(maxStep, step, table))
      },
    ),
  )
})
