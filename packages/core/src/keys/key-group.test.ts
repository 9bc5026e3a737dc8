import { expect, test } from 'vitest'
import { keyGroup, largestGroups } from './key-group.ts'

test.each([
  ['product:100', 'product'],
  ['product_100', 'product'],
  ['user-session/4', 'user-session'],
  ['100:product', 'other'],
  ['nothing', 'other'],
  [`${'a'.repeat(40)}:1`, 'other'],
])('%s is in the group %s', (key, group) => {
  expect(keyGroup(key)).toBe(group)
})

test('the largest groups keep their names, the rest become one group', () => {
  const sums = new Map([
    ['a', 1],
    ['b', 5],
    ['other', 2],
    ['c', 3],
    ['d', 1],
  ])
  expect([...largestGroups(sums, 3)]).toEqual([
    ['b', 5],
    ['c', 3],
    ['other', 4],
  ])
})
