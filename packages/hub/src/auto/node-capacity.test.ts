import { seededRandom } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { NodeCapacity } from './node-capacity.ts'
import { RoundTrips } from './round-trips.ts'
import { partWorthHandling } from './strain.ts'
import { savingOf } from './strategy-saving.ts'

test('it learns what a node can do, whatever the load it sees, and through noise', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = seededRandom(seed)
    const truth = 10_000 + random() * 200_000
    const capacity = new NodeCapacity()
    for (let sample = 0; sample < 60; sample++) {
      const use = 0.1 + random() * 0.8
      capacity.learn(truth * use * (0.95 + random() * 0.1), use)
    }
    expect(capacity.perSecond).toBeGreaterThan(truth * 0.93)
    expect(capacity.perSecond).toBeLessThan(truth * 1.07)
    expect(capacity.isTrusted).toBe(true)
  }
})

test('quiet hours, in which an operation costs more, do not undo what the busy one taught', () => {
  const capacity = new NodeCapacity()
  for (let sample = 0; sample < 30; sample++) capacity.learn(80_000, 0.8)
  // At 5 % it looks as if it were full at a third of that.
  for (let sample = 0; sample < 60; sample++) capacity.learn(1700, 0.05)
  expect(capacity.perSecond).toBeGreaterThan(85_000)
})

test('a node that was only seen idle is not trusted', () => {
  const capacity = new NodeCapacity()
  for (let sample = 0; sample < 30; sample++) capacity.learn(1000, 0.05)
  expect(capacity.isTrusted).toBe(false)
  capacity.learn(1000, 0.01)
  expect(capacity.perSecond).toBeCloseTo(20_000)
})

test('heavier commands than before are learnt within a minute', () => {
  const capacity = new NodeCapacity()
  for (let sample = 0; sample < 60; sample++) capacity.learn(50_000, 0.5)
  for (let sample = 0; sample < 60; sample++) capacity.learn(10_000, 0.5)
  expect(capacity.perSecond).toBeLessThan(35_000)
})

test('one slow answer is no load, and answers that wait for long are', () => {
  const trips = new RoundTrips()
  for (const ms of [0.2, 0.25, 0.2, 9, 0.22, 0.2]) trips.add(ms)
  expect(trips.use).toBe(0)
  for (let index = 0; index < 5; index++) trips.add(1)
  expect(trips.use).toBeGreaterThan(0.7)
})

test('the fuller the node, the smaller the keys that are worth it; never worthless ones', () => {
  const parts = [0.5, 0.7, 0.8, 0.9, 1, 1.5].map(partWorthHandling)
  expect(parts.toSorted((a, b) => b - a)).toEqual(parts)
  expect(parts[1]).toBeCloseTo(0.0025, 3)
  expect(parts.at(-1)).toBeGreaterThan(0)
})

test('no strategy saves more than there is, nor less than nothing', () => {
  const random = seededRandom(7)
  const cache = { strategy: 'LocalCache' } as never
  const copies = { strategy: 'RedundantKeys', copyCount: 3 } as never
  for (let round = 0; round < 500; round++) {
    const ground = {
      readsPerSecond: random() * 10_000,
      writesPerSecond: random() * 2000,
      processCount: Math.floor(random() * 50),
      nodeCount: 1 + Math.floor(random() * 6),
    }
    for (const template of [cache, copies]) {
      const { savedPerSecond } = savingOf(template, ground)
      expect(savedPerSecond).toBeGreaterThanOrEqual(0)
      expect(savedPerSecond).toBeLessThanOrEqual(ground.readsPerSecond)
    }
    if (ground.nodeCount === 1) expect(savingOf(copies, ground).savedPerSecond).toBe(0)
  }
})
