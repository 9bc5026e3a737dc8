import { afterEach, expect, test, vi } from 'vitest'
import { fixedWindow } from '../spec/specs.ts'
import { localLimiter } from './local-limiter.ts'
import { TurnClock } from './turn-clock.ts'

afterEach(() => vi.useRealTimers())

test('a burst shares readings, 32 calls at most; the next turn reads again', async () => {
  let time = 1000
  let reads = 0
  const clock = new TurnClock(
    () => {
      reads++
      return time
    },
    () => false,
  )
  for (let call = 0; call < 1000; call++) expect(clock.now()).toBe(1000)
  expect(reads).toBeLessThan(1000 / 30 + 6)
  time = 2000
  let stale = 0
  while (clock.now() === 1000) stale++
  expect(stale).toBeLessThanOrEqual(32)
  for (let call = 0; call < 10; call++) clock.now()
  time = 3000
  await Promise.resolve()
  expect(clock.now()).toBe(3000)
})

test('calls with time in between always read the clock', async () => {
  let time = 0
  const clock = new TurnClock(
    () => ++time,
    () => false,
  )
  for (let call = 1; call < 100; call++) expect(clock.now()).toBe(call)
})

test('fake timers are followed at once', () => {
  vi.useFakeTimers()
  const limiter = localLimiter(fixedWindow({ limit: 20, windowMs: 1000, anchor: 'firstHit' }))
  for (let call = 0; call < 20; call++) expect(limiter.take('k').allowed).toBe(true)
  expect(limiter.take('k').allowed).toBe(false)
  vi.advanceTimersByTime(1000)
  expect(limiter.take('k').allowed).toBe(true)
})
