import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { HubClock } from './hub-clock.ts'

test('the clock offset is learned from the fastest message', () => {
  const clock = new FakeClock(1_000_000)
  const hub = new HubClock(clock)
  const offset = 3_600_000
  for (const transitMs of [80, 5, 200, 40]) {
    const sentAt = clock.now() + offset
    clock.advance(transitMs)
    hub.heard(sentAt)
  }
  expect(hub.now() - clock.now()).toBe(offset - 5)
})

test('a hub whose clock was set back is trusted once the window has passed', () => {
  const clock = new FakeClock(1_000_000)
  const hub = new HubClock(clock, 0, 4)
  hub.heard(clock.now() + 5000)
  for (let count = 0; count < 4; count++) hub.heard(clock.now() - 5000)
  expect(hub.offsetMs).toBe(-5000)
})
