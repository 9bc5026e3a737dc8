import { expect, test } from 'vitest'
import { Lane } from './lane.ts'

test('messages in order are not a gap, a missing one is', () => {
  const lane = new Lane()
  lane.connected('a')
  expect([lane.heard(7), lane.received(8), lane.received(9), lane.heard(9)]).toEqual([false, false, false, false])
  expect(lane.received(11)).toBe(true)
  expect(lane.received(12)).toBe(false)
  expect(lane.heard(14)).toBe(true)
  expect(lane.heard(14)).toBe(false)
})

test('after a return to the same hub, only messages sent meanwhile are a gap', () => {
  const lane = new Lane()
  lane.connected('a')
  lane.heard(3)
  lane.disconnected()
  lane.connected('a')
  expect(lane.heard(3)).toBe(false)
  lane.disconnected()
  lane.connected('a')
  expect(lane.heard(4)).toBe(true)
})

test('another hub has another lane: what that one has carried is unknown', () => {
  const lane = new Lane()
  lane.connected('a')
  lane.heard(3)
  lane.disconnected()
  lane.connected('b')
  expect(lane.heard(3)).toBe(true)
})

test('a hub of the same name whose lane started over has lost its messages', () => {
  const lane = new Lane()
  lane.connected('a')
  lane.heard(57)
  lane.disconnected()
  lane.connected('a')
  expect(lane.heard(0)).toBe(true)
  expect([lane.received(1), lane.received(2)]).toEqual([false, false])
})

test('another hub is a gap even if its lane has carried nothing yet', () => {
  const lane = new Lane()
  lane.connected('a')
  expect(lane.heard(0)).toBe(false)
  lane.disconnected()
  lane.connected('b')
  expect(lane.heard(0)).toBe(true)
})
