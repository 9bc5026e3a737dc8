import { keySlot } from '@firebreak/core/commands'
import { expect, test } from 'vitest'
import { nodesOf, placeCopies } from './place-copies.ts'

const three = (slot: number) => `node-${Math.floor(slot / 5462)}`
const names = (count: number, key = 'product_100') => Array.from({ length: count }, (_, index) => `${key}_${index + 1}`)

test('copies are spread evenly over the nodes, and a fitting name is left as it is', () => {
  const placed = placeCopies(names(20), three, nodesOf(three))
  const perNode = new Map<string, number>()
  for (const { name, slot, node } of placed) {
    expect(slot).toBe(keySlot(name))
    expect(three(slot)).toBe(node)
    perNode.set(node, (perNode.get(node) ?? 0) + 1)
  }
  expect([...perNode.values()].sort()).toEqual([6, 7, 7])
  expect(new Set(placed.map(({ name }) => name)).size).toBe(20)
  expect(placed.some(({ name }) => /^product_100_\d+$/.test(name))).toBe(true)
})

test('every process finds the same names, and a hash tag holds none of them', () => {
  const tagged = names(6, 'cart:{7}')
  expect(placeCopies(tagged, three, nodesOf(three))).toEqual(placeCopies(tagged, three, nodesOf(three).reverse()))
  expect(new Set(placeCopies(tagged, three, nodesOf(three)).map(({ node }) => node)).size).toBe(3)
})
