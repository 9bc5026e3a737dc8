import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { AlarmBoard } from './alarm-board.ts'

const alarm = (id: string) => ({ id, severity: 'warning', cause: id, retry: '' }) as const
const ids = (board: AlarmBoard, kind: string) => board.list().filter(({ id }) => id.startsWith(kind))

test('processes of one service have some of the places, and those of all services half: what the hub finds has one', () => {
  const board = new AlarmBoard(new FakeClock())
  for (let nth = 0; nth < 500; nth++) board.raise(alarm(`lie:shop/${nth}`), 'shop')
  expect(ids(board, 'lie:')).toHaveLength(20)
  expect(ids(board, 'crowd:').map(({ cause }) => cause)).toEqual([
    'processes of shop report more than 20 alarms; the others are not shown',
  ])
  for (let nth = 0; nth < 500; nth++) board.raise(alarm(`lie:service-${nth}/0`), `service-${nth}`)
  expect(ids(board, 'lie:')).toHaveLength(100)
  board.raise(alarm('token:shop'))
  expect(ids(board, 'token:')).toHaveLength(1)
})

test('a place that is free is taken again, and nothing is said of a crowd that is gone', () => {
  const board = new AlarmBoard(new FakeClock())
  for (let nth = 0; nth < 21; nth++) board.raise(alarm(`lie:shop/${nth}`), 'shop')
  // One that is there is counted, also while there is no place.
  board.raise(alarm('lie:shop/0'), 'shop')
  expect(board.list().find(({ id }) => id === 'lie:shop/0')!.count).toBe(2)
  board.clear('lie:shop/3')
  expect(ids(board, 'crowd:')).toEqual([])
  board.raise(alarm('lie:shop/20'), 'shop')
  expect(ids(board, 'lie:')).toHaveLength(20)
})
