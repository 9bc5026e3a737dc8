import { expect, test } from 'vitest'
import { HeatTrack } from '../heat/heat-track.ts'
import { BurstMemory, leastBurst } from './burst-memory.ts'

test('a burst is remembered for a minute after its end, with its highest rate', () => {
  const [memory, track] = [new BurstMemory(), new HeatTrack('main', 'k', 1, undefined)]
  expect(memory.recent(track, 0)).toBeUndefined()
  memory.add(track, { at: 1000, readsPerSecond: 9000 })
  expect(memory.add(track, { at: 2000, readsPerSecond: 3000 })).toEqual({ at: 2000, readsPerSecond: 9000 })
  expect(memory.recent(track, 62_000)?.at).toBe(2000)
  expect(memory.recent(track, 62_001)).toBeUndefined()
  expect(memory.add(track, { at: 70_000, readsPerSecond: 3000 }).readsPerSecond).toBe(3000)
})

test('a hundredth of a node is a burst; of a small one that may be chance', () => {
  expect(leastBurst(100_000)).toBe(1000)
  expect(leastBurst(5000)).toBe(200)
})
