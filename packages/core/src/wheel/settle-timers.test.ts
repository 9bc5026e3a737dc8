import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { SettleTimers } from './settle-timers.ts'

/** Numbers in [0, 1), the same in each run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

test('with 60 s and 10 s at random, each key is evaluated once, 60 to 70 s after its first report, and not together', () => {
  const clock = new FakeClock()
  const startMs = clock.now()
  const firstReportMs = new Map<number, number>()
  const settledMs = new Map<number, number>()
  const timers = new SettleTimers({
    clock,
    settleMs: 60_000,
    settleJitterMs: 10_000,
    random: seeded(11),
    onSettled(index) {
      expect(settledMs.has(index)).toBe(false)
      settledMs.set(index, clock.now())
    },
  })
  // A thousand keys, a hundred of them new in each second, each reported by a host a second.
  for (let second = 0; second < 50; second++) {
    for (let index = 0; index < Math.min(1000, (second + 1) * 100); index++) {
      if (!firstReportMs.has(index)) firstReportMs.set(index, clock.now())
      timers.arm(index)
    }
    clock.advance(1000)
    timers.advance()
  }
  expect(timers.size).toBe(1000)
  for (let step = 0; step < 400; step++) {
    clock.advance(100)
    timers.advance()
  }
  expect(clock.now() - startMs).toBe(90_000)
  expect(settledMs.size).toBe(1000)
  const waits = [...settledMs].map(([index, ms]) => ms - firstReportMs.get(index)!)
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(60_000)
  expect(Math.max(...waits)).toBeLessThanOrEqual(70_000 + 200)
  // A hundred keys of one moment: their evaluations are spread over the ten seconds.
  const atOnce = new Map<number, number>()
  for (let index = 0; index < 100; index++) {
    const ms = settledMs.get(index)!
    atOnce.set(ms, (atOnce.get(ms) ?? 0) + 1)
  }
  expect(atOnce.size).toBeGreaterThan(40)
  expect(Math.max(...atOnce.values())).toBeLessThan(10)
})

test('once evaluated, a key is armed by its next report again; a forgotten one is not evaluated', () => {
  const clock = new FakeClock()
  const settled: number[] = []
  const timers = new SettleTimers({
    clock,
    settleMs: 100,
    settleJitterMs: 0,
    onSettled: (index) => settled.push(index),
  })
  const advance = (ms: number) => {
    clock.advance(ms)
    timers.advance()
  }
  timers.arm(1)
  timers.arm(2)
  advance(50)
  timers.arm(1)
  timers.disarm(2)
  advance(60)
  expect(settled).toEqual([1])
  timers.arm(1)
  expect(timers.nextDueMs()).toBeLessThanOrEqual(100)
  advance(105)
  expect(settled).toEqual([1, 1])
  expect(timers.size).toBe(0)
})

test('where all timers are taken, keys are refused and counted', () => {
  const timers = new SettleTimers({ clock: new FakeClock(), maxKeys: 3, onSettled() {} })
  for (let index = 0; index < 5; index++) timers.arm(index)
  expect([timers.size, timers.refused]).toEqual([3, 2])
})
