import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { anyApp } from '../access/credential.ts'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import { TokenProcesses } from './token-processes.ts'

const grant = { name: 'shop', services: ['*'], clusters: ['*'], isValid: () => true }

test('a token has room for so many processes, and for another when one was silent for a minute', () => {
  const alarms = new AlarmBoard(new FakeClock())
  const processes = new TokenProcesses(3, alarms)
  for (const id of ['a', 'b', 'c', 'a']) processes.check(grant, id, 0)
  expect(() => processes.check(grant, 'd', 1000)).toThrow(/maxProcesses/)
  expect(alarms.list().map(({ id }) => id)).toEqual(['token:shop'])
  for (const id of ['a', 'b']) processes.check(grant, id, 50_000)
  processes.check(grant, 'd', 61_000)
  expect(() => processes.check(grant, 'c', 61_000)).toThrow()
  // Its own bound goes before the hub's.
  expect(() => processes.check({ ...grant, name: 'one', maxProcesses: 1 }, 'a', 0)).not.toThrow()
  expect(() => processes.check({ ...grant, name: 'one', maxProcesses: 1 }, 'b', 0)).toThrow()
  processes.watch(200_000)
  expect(alarms.list()).toEqual([])
  expect(() => processes.check(grant, 'c', 200_000)).not.toThrow()
})

test('a token whose processes are cut off one after the other has no room for new ones for a minute', () => {
  const alarms = new AlarmBoard(new FakeClock())
  const processes = new TokenProcesses(1000, alarms)
  processes.check(grant, 'honest', 0)
  for (let nth = 0; nth < 5; nth++) {
    processes.check(grant, `liar ${nth}`, nth)
    // However often it is told.
    for (let time = 0; time < 3; time++) processes.countCutOff(grant, `liar ${nth}`, nth)
  }
  expect(() => processes.check(grant, 'liar 5', 100)).toThrow(/cut off/)
  expect(() => processes.check(grant, 'liar 0', 100)).toThrow(/cut off/)
  expect(alarms.list()[0]).toMatchObject({ id: 'token:shop', cause: expect.stringContaining('5 processes') })
  // Those that were there before stay, and so do those of other tokens.
  expect(() => processes.check(grant, 'honest', 100)).not.toThrow()
  expect(() => processes.check({ ...grant, name: 'cart' }, 'new', 100)).not.toThrow()
  processes.watch(61_000)
  expect(() => processes.check(grant, 'liar 5', 61_000)).not.toThrow()
})

test('where a hub has no tokens, it has no bound of them', () => {
  const processes = new TokenProcesses(1, new AlarmBoard(new FakeClock()))
  for (let id = 0; id < 100; id++) processes.check({ ...anyApp }, `process ${id}`, 0)
})
