import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Outlet } from '../transport/outlet.ts'
import { Turn } from '../transport/turn.ts'
import { Backlog } from './backlog.ts'
import { ReplySlots } from './reply-slots.ts'

function setUp(maxInFlight = 65_536) {
  const runtime = fakeRuntime()
  const turn = new Turn(runtime)
  turn.nowMs = 0
  const host = { turn, runtime, maxOutputBytes: 1_000_000, slowReaderMs: 1000, maxInFlight, isFull: false }
  const outlet = new Outlet('client', turn)
  const slots = new ReplySlots(outlet)
  return { backlog: new Backlog(host, outlet, slots, () => {}), slots, turn }
}

test('as many requests may be in flight as a client may leave replies unread', () => {
  const { backlog, slots } = setUp()
  backlog.renewWindow()
  expect(backlog.window).toBe(1024)
  backlog.weigh(5, true)
  expect(backlog.window).toBe(65_536)
  backlog.weigh(10_000, true)
  backlog.weigh(5, true)
  expect(backlog.window).toBe(100)
  // In pieces: the part that has arrived counts.
  slots.take()
  backlog.weigh(30_000, false)
  backlog.weigh(20_000, true)
  expect(backlog.window).toBe(20)
  backlog.weigh(900_000, true)
  expect(backlog.window).toBe(16)
})

test('the size of replies is measured again when nothing is in flight, and after a while', () => {
  const { backlog, slots, turn } = setUp()
  backlog.weigh(10_000, true)
  backlog.renewWindow()
  expect(backlog.window).toBe(1024)
  slots.take()
  backlog.weigh(10_000, true)
  turn.nowMs = 999
  backlog.renewWindow()
  expect(backlog.window).toBe(100)
  turn.nowMs = 1000
  backlog.renewWindow()
  expect(backlog.window).toBe(1024)
})

test('never more than are allowed of any size', () => {
  const { backlog } = setUp(7)
  backlog.renewWindow()
  expect(backlog.window).toBe(7)
  backlog.weigh(1, true)
  expect(backlog.window).toBe(7)
})
