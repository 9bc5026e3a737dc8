import { expect, test } from 'vitest'
import { compareLines, extendLine, readLine, restoredLine } from './change-line.ts'

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

test('a store that went on by more changes than a line holds is ahead, and not another history', () => {
  const own = ['1000-a', '2000-b']
  let stored: readonly string[] = own
  for (let change = 0; change < 150; change++) stored = extendLine(stored, 1500, `c${change}`)!
  expect(stored).not.toContain('2000-b')
  expect(compareLines(own, stored)).toBe('ahead')
  expect(compareLines(stored, own)).toBe('behind')
})

test('a full line is ahead only of what is older than all that it holds', () => {
  let stored: readonly string[] = []
  for (let change = 0; change < 150; change++) stored = extendLine(stored, 1500, `c${change}`)!
  expect(compareLines(['1000-a', '90000-b'], stored)).toBe('older')
})

test('changes of hubs that keep no line are placed by their version: each is ahead of the one before', () => {
  const at = (version: number) => readLine(undefined, version, false)
  expect(compareLines(at(1), at(2))).toBe('ahead')
  expect(compareLines(at(3), at(2))).toBe('behind')
  // A hub that keeps one has changed something since.
  expect(compareLines(at(1), extendLine(at(2), 5000, 'a')!)).toBe('ahead')
  expect(compareLines(extendLine(at(2), 5000, 'a')!, at(1))).toBe('behind')
  // Not where it went back: what was changed on top of version 2 is not in the history of version 3.
  expect(compareLines(at(3), extendLine(at(2), 5000, 'a')!)).toBe('newer')
})
