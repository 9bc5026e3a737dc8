import { expect, test } from 'vitest'
import { compareLines, restoredLine } from './change-line.ts'

test('a change that one hub had not heard of outlives a store that this hub was the first to write again', () => {
  const [first, second] = ['10-a', '20-b']
  // The one that did not know of the second change writes its line into the empty store, later than that change.
  const stored = restoredLine([first], '', 500, 'x')
  expect(compareLines([first, second], stored)).toBe('older')
  const restored = restoredLine([first, second], stored.at(-1)!, 600, 'y')
  expect(compareLines(stored, restored)).toBe('ahead')
  expect(compareLines([first, second], restored)).toBe('ahead')
})

test('a change made after the store was written again wins over one made before, however long that took', () => {
  const stored = [...restoredLine(['10-a'], '', 15, 'x'), '30-c']
  expect(compareLines(['10-a', '20-b'], stored)).toBe('newer')
  expect(compareLines(['10-a', '40-d'], stored)).toBe('older')
})

test('lines that differ only in who wrote them again are not fought over', () => {
  const own = restoredLine(['10-a'], '', 900, 'x')
  expect(compareLines(own, restoredLine(['10-a'], '', 500, 'y'))).toBe('newer')
})

test('a line that is written again goes forward, and holds a hundred entries at most', () => {
  const long = Array.from({ length: 100 }, (_, index) => `${1000 + index}-n${index}`)
  const line = restoredLine(long, '5000-z', 7, 'x')
  expect(line).toHaveLength(100)
  expect(line.slice(-3)).toEqual(['1099-n99', '5000-z', '5001-restored.x'])
})
