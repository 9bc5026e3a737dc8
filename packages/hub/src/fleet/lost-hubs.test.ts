import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import { LostHubs } from './lost-hubs.ts'

function watchedHubs() {
  const clock = new FakeClock()
  const board = new AlarmBoard(clock)
  const lost = new LostHubs(board)
  const alarms = () => board.list().map(({ id }) => id)
  /** Each second these others are on the board. */
  const pass = (seconds: number, others: readonly string[], leaving: readonly string[] = []) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000)
      lost.watch(new Set(others), new Set(leaving), clock.now())
    }
    return alarms()
  }
  return { board, pass }
}

test('a hub that vanishes raises an alarm that says what to do, and its return ends it', () => {
  const { board, pass } = watchedHubs()
  expect(pass(3, ['a', 'b'])).toEqual([])
  // A moment of silence is nothing.
  expect(pass(3, ['a'])).toEqual([])
  expect(pass(3, ['a', 'b'])).toEqual([])
  expect(pass(10, ['a'])).toEqual(['hub-lost:b'])
  expect(board.list()[0]).toMatchObject({
    severity: 'warning',
    cause: expect.stringContaining('the hub b is gone'),
    retry: expect.stringContaining('start it again'),
  })
  expect(pass(1, ['a', 'b'])).toEqual([])
})

test('a hub that says goodbye is not missed', () => {
  const { pass } = watchedHubs()
  pass(3, ['a', 'b'])
  pass(2, ['a', 'b'], ['b'])
  expect(pass(20, ['a'])).toEqual([])
})

test('a hub that another replaced, or that is gone for an hour, is missed no longer', () => {
  const { pass } = watchedHubs()
  pass(3, ['a', 'b'])
  expect(pass(10, ['a'])).toEqual(['hub-lost:b'])
  expect(pass(1, ['a', 'c'])).toEqual([])
  expect(pass(10, ['a'])).toEqual(['hub-lost:c'])
  expect(pass(3601, ['a'])).toEqual([])
})
