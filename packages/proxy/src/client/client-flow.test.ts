import { expect, test } from 'vitest'
import { ClientFlow, holds } from './client-flow.ts'

type Step = 'end' | 'lose' | 'leave' | 'close'

test.each<[steps: Step[], hasEnded: boolean, isLost: boolean, isLeaving: boolean, isClosed: boolean]>([
  [[], false, false, false, false],
  [['end'], true, false, false, false],
  [['lose', 'end'], true, true, false, false],
  [['end', 'lose', 'end'], true, true, false, false],
  [['leave'], false, false, true, false],
  [['leave', 'end'], true, false, true, false],
  [['end', 'leave'], true, false, true, false],
  [['lose', 'end', 'leave', 'leave'], true, true, true, false],
  [['close'], true, false, true, true],
  [['leave', 'close', 'end', 'leave'], true, false, true, true],
])('after %j: ended %s, lost %s, leaving %s, closed %s', (steps, hasEnded, isLost, isLeaving, isClosed) => {
  const flow = new ClientFlow()
  for (const step of steps) flow[step]()
  expect([flow.hasEnded, flow.isLost, flow.isLeaving, flow.isClosed]).toEqual([hasEnded, isLost, isLeaving, isClosed])
})

test('input waits until the last obstacle is gone', () => {
  const flow = new ClientFlow()
  flow.block(holds.replies)
  flow.block(holds.reader)
  flow.unblock(holds.replies)
  expect([flow.isBlocked, flow.isBlockedBy(holds.replies), flow.isBlockedBy(holds.reader)]).toEqual([true, false, true])
  flow.unblock(holds.reader)
  expect(flow.isBlocked).toBe(false)
})
