import { expect, test } from 'vitest'
import { rowSlots } from './row-slots.ts'

const slots = (text: string) => new Map([...text].map((id, slot) => [id, slot]))

test('rows that stay keep their elements whatever their order', () => {
  expect(rowSlots(slots('abc'), ['c', 'a', 'b'], true)).toEqual(slots('abc'))
})

test('a new row takes over the element of one that is gone', () => {
  expect([...rowSlots(slots('abc'), ['x', 'a', 'y'], true)]).toEqual([
    ['x', 1],
    ['a', 0],
    ['y', 2],
  ])
})

test('more rows than before get elements of their own', () => {
  expect([...rowSlots(slots('ab'), ['a', 'x', 'b', 'y'], true).values()]).toEqual([0, 2, 1, 3])
})

test('nothing is taken over while rows are held', () => {
  expect([...rowSlots(slots('abc'), ['x', 'b'], false).values()]).toEqual([3, 1])
})
