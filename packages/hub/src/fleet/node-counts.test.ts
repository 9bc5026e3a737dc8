import { expect, test } from 'vitest'
import { NodeCounts } from './node-counts.ts'

test('one process among three moves the count no further than the others do', () => {
  const counts = new NodeCounts()
  expect(counts.of('main')).toBe(1)
  counts.add('main', 'a', 3, 0)
  expect(counts.of('main')).toBe(3)
  counts.add('main', 'liar', 16_384, 0)
  expect(counts.of('main')).toBe(3)
  counts.add('main', 'b', 3, 0)
  counts.add('main', 'liar', 1, 1000)
  expect(counts.of('main')).toBe(3)
  // A cluster that was resharded: all see it.
  for (const id of ['a', 'b']) counts.add('main', id, 6, 2000)
  expect(counts.of('main')).toBe(6)
})

test('clusters and those who tell of them are bounded, and forgotten once nobody speaks of them', () => {
  const counts = new NodeCounts()
  for (let nth = 0; nth < 5000; nth++) counts.add(`cluster-${nth}`, 'liar', 2, 0)
  expect([counts.of('cluster-999'), counts.of('cluster-1000')]).toEqual([2, 1])
  counts.forget(600_001)
  counts.add('main', 'a', 3, 600_001)
  for (let nth = 0; nth < 100; nth++) counts.add('main', `liar-${nth}`, 9, 600_001)
  expect(counts.of('main')).toBe(9)
  // Those who have gone silent no longer count.
  counts.add('main', 'a', 3, 620_000)
  expect([counts.of('main'), counts.of('cluster-1')]).toEqual([3, 1])
})
