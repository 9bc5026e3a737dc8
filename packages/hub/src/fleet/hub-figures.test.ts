import { expect, test } from 'vitest'
import { figuresIn, figureTotals } from './hub-figures.ts'

test('what a hub tells of itself arrives at the others among its totals, and is absent from those of an earlier version', () => {
  const own = {
    version: '1.2.3',
    startedAt: 5,
    memoryBytes: 100,
    busy: 0,
    reportsPerSecond: 7,
    refusedReports: 0,
  }
  const totals = { 'processes\u0000shop': 3, ...figureTotals(own) }
  expect(Object.values(totals).every((value) => typeof value === 'number')).toBe(true)
  expect(figuresIn(totals)).toEqual(own)
  expect(figuresIn({ 'processes\u0000shop': 3 })).toEqual({})
})
