import type { Timers } from '@firebreak/core'
import { expect, test } from 'vitest'
import { TurnQueue } from './turn-queue.ts'

function setUp() {
  const immediates: (() => void)[] = []
  const timers = {
    setImmediate: (callback: () => void) => {
      immediates.push(callback)
      return { cancel() {} }
    },
  } as unknown as Timers
  const endTurn = () => {
    for (const callback of immediates.splice(0)) callback()
  }
  return { queue: new TurnQueue(timers), endTurn }
}

test('the first piece runs at once, each further one in its own turn, in order', () => {
  const { queue, endTurn } = setUp()
  const done: number[] = []
  for (const piece of [1, 2, 3]) queue.add(() => done.push(piece))
  expect(done).toEqual([1])
  endTurn()
  expect(done).toEqual([1, 2])
  queue.add(() => done.push(4))
  endTurn()
  endTurn()
  expect(done).toEqual([1, 2, 3, 4])
  endTurn()
  queue.add(() => done.push(5))
  expect(done).toEqual([1, 2, 3, 4, 5])
})

test('a piece that fails does not hold up the others, and cleared pieces do not run', () => {
  const { queue, endTurn } = setUp()
  const done: number[] = []
  expect(() =>
    queue.add(() => {
      throw new Error('no')
    }),
  ).toThrow('no')
  queue.add(() => done.push(2))
  endTurn()
  expect(done).toEqual([2])
  queue.add(() => done.push(3))
  expect(queue.length).toBe(1)
  queue.clear()
  endTurn()
  expect(done).toEqual([2])
})
