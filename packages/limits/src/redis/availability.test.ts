import { steadyClock, systemTimers, type Timers } from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import { letTimePass } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Availability, DeadlineError } from './availability.ts'

const deadlineMs = 40

/** An availability for a Redis that is never asked, and how many timers it has set. */
function availability() {
  let timersSet = 0
  const timers: Timers = {
    ...systemTimers,
    setTimeout: (callback, delayMs) => {
      timersSet++
      return systemTimers.setTimeout(callback, delayMs)
    },
  }
  const options = { deadlineMs, failures: 1000, probeMs: 1000, clock: steadyClock, timers, onError: () => {} }
  return { calls: new Availability({} as Redis, options), timersSet: () => timersSet }
}

const never = () => new Promise<never>(() => {})

/** How long a call without a reply takes. */
async function unanswered(calls: Availability): Promise<number> {
  const startedAt = steadyClock.now()
  await expect(calls.call(never)).rejects.toBeInstanceOf(DeadlineError)
  return steadyClock.now() - startedAt
}

test('each call has the whole deadline for itself, whenever it was made', async () => {
  const { calls } = availability()
  const first = unanswered(calls)
  await letTimePass(deadlineMs / 2)
  const second = unanswered(calls)
  expect(await first).toBeGreaterThanOrEqual(deadlineMs)
  expect(await second).toBeGreaterThanOrEqual(deadlineMs)
  // And when all had ended.
  expect(await unanswered(calls)).toBeGreaterThanOrEqual(deadlineMs)
})

test('a thousand answered calls share one timer', async () => {
  const { calls, timersSet } = availability()
  await Promise.all(Array.from({ length: 1000 }, (_, index) => calls.call(() => Promise.resolve(index))))
  expect(timersSet()).toBe(1)
})

test('an answer after the deadline is ignored', async () => {
  const { calls } = availability()
  let answer: (value: string) => void = () => {}
  const heard: unknown[] = []
  const late = new Promise<string>((resolve) => {
    answer = resolve
  })
  await new Promise<void>((resolve) => {
    calls.start(
      () => late,
      (value) => heard.push(value),
      (error) => {
        heard.push(error)
        resolve()
      },
    )
  })
  answer('late')
  await late
  await new Promise((resolve) => setImmediate(resolve))
  expect(heard).toEqual([expect.any(DeadlineError)])
})

test('a client that throws instead of rejecting counts as failed too', async () => {
  const { calls } = availability()
  const thrown = new Error('not open')
  const throwing = () => {
    throw thrown
  }
  await expect(calls.call(throwing)).rejects.toBe(thrown)
})
