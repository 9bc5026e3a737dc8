import { expect, test } from 'vitest'
import { type CounterOperation, isLinearizable } from './counter-history.ts'

const add = (amount: number, began: number, ended: number | undefined, value?: number): CounterOperation => ({
  amount,
  began,
  ended,
  value,
})

test('overlapping operations may have happened in any order, others only in theirs', () => {
  expect(isLinearizable([add(1, 0, 10, 2), add(1, 1, 9, 1)])).toBe(true)
  expect(isLinearizable([add(1, 0, 1, 2), add(1, 2, 3, 1)])).toMatch(/^0 of 2/)
  expect(isLinearizable([add(1, 0, 1, 1), add(0, 2, 3, 0)])).toMatch(/^1 of 2/)
  expect(isLinearizable([add(5, 0, 9, 2), add(-3, 0, 9, -3), add(0, 3, 4, -3)])).toBe(true)
})

test('two callers cannot get the same value', () => {
  expect(isLinearizable([add(1, 0, 10, 1), add(1, 0, 10, 1)])).toMatch(/^1 of 2/)
})

test('a lost operation may have happened, at once or late, or never', () => {
  expect(isLinearizable([add(1, 0, undefined), add(1, 5, 6, 1), add(1, 7, 8, 3)])).toBe(true)
  expect(isLinearizable([add(1, 0, undefined), add(1, 5, 6, 1), add(1, 7, 8, 2)])).toBe(true)
  expect(isLinearizable([add(1, 0, undefined), add(1, 5, 6, 1), add(1, 7, 8, 4)])).toMatch(/^1 of 2/)
})

test('what one client sent after another command happens after it', () => {
  const increment = add(1, 0, 10, 1)
  expect(isLinearizable([increment, add(0, 0, 10, 0)])).toBe(true)
  expect(isLinearizable([increment, { ...add(0, 0, 10, 0), after: increment }])).toMatch(/of 2/)
})
