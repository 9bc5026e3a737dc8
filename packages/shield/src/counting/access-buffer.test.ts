import { AccessCounter } from '@firebreak/core/heat'
import { expect, test } from 'vitest'
import { AccessBuffer, type BurstWatch } from './access-buffer.ts'

/** A buffer whose bursts are identified by the number of accesses before them. */
function bufferWith(watch: BurstWatch): { add: (name: string) => void; buffer: AccessBuffer; bursts: number[] } {
  const bursts: number[] = []
  let accesses = 0
  const buffer = new AccessBuffer(new AccessCounter(), watch, () => bursts.push(accesses))
  const add = (name: string) => {
    accesses++
    buffer.add(name, false, 0)
  }
  buffer.restart()
  return { add, buffer, bursts }
}

test('accesses are handed over in hundreds, and a burst is noticed then', () => {
  const watch = {
    burstCount: 20,
    leftCount: Number.POSITIVE_INFINITY,
    isBurst: (_: string | number, __: number, count: number) => count === 20,
  }
  const { add, bursts } = bufferWith(watch)
  for (let nth = 0; nth < 300; nth++) add('k')
  expect(bursts).toEqual([128])
})

test('if a key is about to cross its threshold, the crossing is noticed at that very access, even after others were handed over', () => {
  const watch = {
    burstCount: 90,
    leftCount: 90,
    isBurst: (name: string | number, _: number, count: number) => name === 'k' && count === 90,
  }
  const alone = bufferWith(watch)
  for (let nth = 0; nth < 65; nth++) alone.add('k')
  // One tick later.
  alone.buffer.flush()
  for (let nth = 0; nth < 60; nth++) alone.add('k')
  expect(alone.bursts).toEqual([90])
  const among = bufferWith(watch)
  for (let nth = 0; nth < 200; nth++) among.add(nth % 2 === 0 ? 'k' : 'other')
  // Its 90th access is the 179th of all.
  expect(among.bursts[0]).toBeGreaterThanOrEqual(179)
  expect(among.bursts[0]).toBeLessThan(179 + 8)
})
