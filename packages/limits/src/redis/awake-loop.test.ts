import { steadyClock } from '@firebreak/core'
import { expect, test } from 'vitest'
import { AwakeLoop } from './awake-loop.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** An hour, so that it never ends on a slow machine. */
const longMs = 3_600_000

/** How often the loop turns, counted by the immediates requested besides the test's own. */
function watchedLoop(maxMs: number, cores = 2) {
  let asked = 0
  const loop = new AwakeLoop(maxMs, {
    cores,
    clock: steadyClock,
    setImmediate: (callback) => {
      asked++
      setImmediate(callback)
    },
  })
  return { loop, asked: () => asked }
}

test('the loop stays awake for a reply if the last one came in time, until it arrives', async () => {
  const { loop, asked } = watchedLoop(longMs)
  loop.sent(steadyClock.now())
  await turn()
  expect(asked()).toBe(0)
  loop.answered(0.05)
  loop.sent(steadyClock.now())
  for (let index = 0; index < 5; index++) await turn()
  expect(asked()).toBeGreaterThanOrEqual(5)
  loop.answered(0.05)
  await turn()
  const atEnd = asked()
  for (let index = 0; index < 5; index++) await turn()
  expect(asked()).toBe(atEnd)
})

test('the loop does not stay awake for a reply after one that took too long', async () => {
  const { loop, asked } = watchedLoop(1)
  loop.sent(steadyClock.now())
  loop.answered(0.5)
  loop.sent(steadyClock.now())
  loop.answered(1.5)
  const before = asked()
  await turn()
  loop.sent(steadyClock.now())
  await turn()
  expect(asked()).toBe(before)
})

test('the loop stays awake for a missing reply only for the configured time', async () => {
  const { loop, asked } = watchedLoop(1)
  loop.sent(steadyClock.now())
  loop.answered(0.5)
  loop.sent(steadyClock.now() - 2)
  await turn()
  await turn()
  expect(asked()).toBe(1)
})

test('on one core the loop never stays awake, because Redis could not run', async () => {
  const { loop, asked } = watchedLoop(longMs, 1)
  loop.sent(steadyClock.now())
  loop.answered(0.05)
  loop.sent(steadyClock.now())
  await turn()
  expect(asked()).toBe(0)
})
