import { expect, test } from 'vitest'
import { SlotMap } from './slot-map.ts'

test('a slot map has its owners in order, and reports slots without an owner', () => {
  const map = new SlotMap<string>()
  map.replace([
    { first: 100, last: 16383, node: 'b' },
    { first: 0, last: 99, node: 'a' },
  ])
  expect([map.ownerOf(99), map.ownerOf(100), map.owners(), map.isWhole]).toEqual(['a', 'b', ['a', 'b'], true])
  map.replace([{ first: 0, last: 5, node: 'c' }])
  expect([map.ownerOf(6), map.isWhole]).toEqual([undefined, false])
})
