import { parseRule } from '@firebreak/core/rules'
import { waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const rule = { id: 'r', prefix: 'k', threshold: 1000, minHoldMs: 0 }

/** Many cold keys, each a little hotter than the one before, so that the list of the hottest is full. */
function background(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k-cold-${index}`, 1 + (index % 7)]))
}

test('keys that are only counted have no object, however many they are', async () => {
  const hub = await TestCore.open([rule])
  for (let n = 0; n < 12; n++) {
    hub.report(background(5000))
    hub.clock.advance(100)
  }
  expect(hub.core.engine.size).toBe(5000)
  expect(hub.core.engine.nearSize).toBeLessThan(1000)
})

test('a key that rises out of the crowd is hot when it should be, one that stays below never', async () => {
  const hub = await TestCore.open([rule])
  const crowd = background(3000)
  const hotAt = new Map<string, number>()
  const began = hub.clock.now()
  for (let n = 0; n < 60; n++) {
    // After two seconds: 1.3 times the threshold, just above, just below, and what a key that is only counted may have at most.
    const rise = n < 20 ? 0.05 : 1
    const counts = { k1: 130 * rise, k2: 106 * rise, k3: 90 * rise, k4: 12 }
    hub.report({
      ...crowd,
      ...Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, Math.ceil(count)])),
    })
    hub.clock.advance(100)
    for (const key of ['k1', 'k2', 'k3', 'k4']) {
      if (!hotAt.has(key) && hub.phase(key) === 'hot') hotAt.set(key, hub.clock.now() - began)
    }
  }
  expect([...hotAt.keys()].sort()).toEqual(['k1', 'k2'])
  // 8 intervals of 130 are 1,000, after the 20 quiet ones.
  expect(hotAt.get('k1')).toBeGreaterThanOrEqual(2700)
  expect(hotAt.get('k1')).toBeLessThanOrEqual(2900)
  expect(hotAt.get('k2')).toBeLessThanOrEqual(3200)
})

test('what was counted before a key came near stays counted', async () => {
  const hub = await TestCore.open([rule])
  // Keys of no rule that fill the list of the hottest.
  const crowd = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`x-${index}`, 20]))
  for (let n = 0; n < 12; n++) {
    hub.report({ ...crowd, k1: 10 })
    hub.clock.advance(100)
  }
  expect(hub.core.engine.get('main', 'k1')).toBeUndefined()
  // 100 of the last second, of which the oldest tenth is about to leave, and 920 now.
  hub.report({ k1: 920 })
  expect(hub.phase('k1')).toBe('hot')
})

test('rules that a count of accesses says nothing about keep their keys near', async () => {
  const hub = await TestCore.open([{ ...rule, measure: 'bytes', threshold: 1_000_000 }])
  const crowd = background(1500)
  for (let n = 0; n < 5; n++) {
    hub.report({ ...crowd, k1: { count: 1, bytes: 180_000 } })
    hub.clock.advance(100)
  }
  expect(hub.core.engine.nearSize).toBe(1501)
  hub.report({ k1: { count: 1, bytes: 180_000 } })
  expect(hub.phase('k1')).toBe('hot')
})

test('new rules reach keys that are only counted', async () => {
  const hub = await TestCore.open([rule])
  const crowd = background(3000)
  for (let n = 0; n < 12; n++) {
    hub.report({ ...crowd, k1: 10 })
    hub.clock.advance(100)
  }
  await hub.core.putRule(parseRule({ ...rule, threshold: 80 }), 'test')
  hub.report({ ...crowd, k1: 10 })
  expect(hub.phase('k1')).toBe('hot')
})

test.each([0, 1])(
  'a hot key that was silent so long that its count is forgotten is counted again at once, with %d threads',
  async (ingestThreads) => {
    const hub = await TestCore.open([{ ...rule, minHoldMs: 600_000 }], { ingestThreads })
    const settled = () => hub.core.intake.inTurn(() => {})
    hub.report({ k1: 1500, k2: 1 })
    await settled()
    expect(hub.phase('k1')).toBe('hot')
    hub.clock.advance(30_000)
    await settled()
    await waitFor(() => hub.core.engine.size === 0)
    expect(hub.phase('k1')).toBe('cooling')
    // Far too little to come near by itself.
    hub.report({ ...background(1000), k1: 3 })
    await settled()
    expect(hub.core.engine.get('main', 'k1')?.tracks[0]?.heat('accesses', hub.clock.now())).toBe(3)
    await hub.core.close()
  },
)
