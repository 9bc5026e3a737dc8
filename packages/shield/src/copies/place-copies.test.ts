import type { RedundantKeysStrategy } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { Upstream } from '../watcher/upstream.ts'
import type { CopiedKey, CopyMeans } from './copied-key.ts'
import type { CopyServers } from './copy-servers.ts'
import { nodesOf, placeCopies } from './place-copies.ts'
import { PlacedCopies } from './placed-copies.ts'

const three = (slot: number) => `node-${Math.floor(slot / 5462)}`
const names = (count: number, key = 'product_100') => Array.from({ length: count }, (_, index) => `${key}_${index + 1}`)

test('copies are spread evenly over the nodes, and a name that fits is kept', () => {
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

test('every process finds the same names, and none contains a hash tag', () => {
  const tagged = names(6, 'cart:{7}')
  expect(placeCopies(tagged, three, nodesOf(three))).toEqual(placeCopies(tagged, three, nodesOf(three).reverse()))
  expect(new Set(placeCopies(tagged, three, nodesOf(three)).map(({ node }) => node)).size).toBe(3)
})

test('names are searched again when a slot that ruled a name out comes to the node', () => {
  let moved = -1
  const nodeOf = (slot: number) => (slot === moved ? 'node-0' : three(slot))
  const copies = names(3, 'product_7')
  const nodes = nodesOf(three).sort()
  const passed = placeCopies(copies, three, nodes).find(
    ({ wanted, name }) => wanted === 'node-0' && name.includes('~'),
  )!
  const placed = new PlacedCopies(
    { name: 'product_7', slot: 0, space: { upstream: { nodeOf } as unknown as Upstream } } as CopiedKey,
    { runtime: fakeRuntime(1, new FakeClock()) } as unknown as CopyMeans,
    {} as CopyServers,
    { strategy: 'RedundantKeys', copies, ttlJitterMs: 0 } satisfies RedundantKeysStrategy,
  )
  expect(placed.place()).toEqual([])
  expect(placed.place()).toBeUndefined()
  moved = passed.passedSlots[0]!
  expect(placed.place()?.map(({ name }) => name)).toEqual([passed.name])
  expect(placed.all.map(({ name }) => name)).toEqual(placeCopies(copies, nodeOf, nodes).map(({ name }) => name))
  expect(placed.place()).toBeUndefined()
})
