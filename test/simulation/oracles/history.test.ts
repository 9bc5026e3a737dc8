import { expect, test } from 'vitest'
import { extraEvent } from './history.ts'

test('an event may be in the history as often as hubs recorded it, and not more often', () => {
  expect(extraEvent(['a', 'b', 'a'], new Map([['a', 2]]))).toBeUndefined()
  expect(extraEvent(['a', 'b', 'a'], new Map([['a', 1]]))).toBe('a')
  expect(extraEvent(['a', 'b', 'b'], new Map([['a', 2]]))).toBe('b')
  expect(extraEvent(['a', 'a', 'a'], new Map([['a', 2]]))).toBe('a')
})
