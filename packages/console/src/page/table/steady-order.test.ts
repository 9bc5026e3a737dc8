import fc from 'fast-check'
import { expect, test } from 'vitest'
import { steadyOrder } from './steady-order.ts'

test('rows that were there keep their places, new ones come at the end', () => {
  expect(steadyOrder(['a', 'b', 'c'], ['d', 'c', 'a'], (row) => row)).toEqual(['a', 'c', 'd'])
})

test('whatever the orders, every row is there once and none that stays is moved past another that stays', () => {
  const rows = fc.uniqueArray(fc.string(), { maxLength: 12 })
  fc.assert(
    fc.property(rows, rows, (before, now) => {
      const steady = steadyOrder(before, now, (row) => row)
      expect([...steady].sort()).toEqual([...now].sort())
      const stayed = before.filter((row) => now.includes(row))
      expect(steady.slice(0, stayed.length)).toEqual(stayed)
    }),
  )
})
