import { expect, test } from 'vitest'
import { PrefixTree } from './prefix-tree.ts'

test('sums keys, bytes, elements and TTLs at every level and folds numbers and ids', () => {
  const tree = new PrefixTree()
  for (let id = 0; id < 1000; id++) tree.add(Buffer.from(`user:${id}:cart`), 100, 2, id % 2 === 0)
  tree.add(Buffer.from('session:0b8f2c1e-77aa-4bcd-9a01-3f2e1d0c9b8a'), 5000, 1, true)
  tree.add(Buffer.from('plain'), 1, 1, false)
  const root = tree.toJSON(0)
  expect(root).toMatchObject({ prefix: '', keys: 1002, bytes: 105_001, elements: 2002, keysWithTtl: 501 })
  expect(root.children.map(({ prefix, keys }) => [prefix, keys])).toEqual([
    ['user:', 1000],
    ['session:', 1],
  ])
  expect(root.children[0]!.children).toMatchObject([{ prefix: 'user:<n>:', keys: 1000, keysWithTtl: 500 }])
  expect(root.children[1]!.children).toMatchObject([{ prefix: 'session:<id>', bytes: 5000 }])
})

test('never grows beyond its limit, and still counts every key', () => {
  const tree = new PrefixTree({ maxNodes: 50 })
  for (let index = 0; index < 5000; index++) tree.add(Buffer.from(`name${index}x:tail`), 10, 1, false)
  const root = tree.toJSON(0)
  expect(root.keys).toBe(5000)
  expect(root.children.length).toBeLessThanOrEqual(51)
  expect(root.children.reduce((sum, child) => sum + child.keys, 0)).toBe(5000)
})

test('other separators and depths can be set, and small branches left out', () => {
  const tree = new PrefixTree({ separators: ':/', maxDepth: 2 })
  tree.add(Buffer.from('a/b:c/d'), 1000, 1, false)
  tree.add(Buffer.from('z/y:x/w'), 1, 1, false)
  const root = tree.toJSON(0.01)
  expect(root.children.map(({ prefix }) => prefix)).toEqual(['a/'])
  expect(root.children[0]!.children.map(({ prefix, children }) => [prefix, children.length])).toEqual([['a/b:', 0]])
})
