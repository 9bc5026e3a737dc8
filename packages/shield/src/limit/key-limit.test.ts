import { limitAlgorithms, type RateLimitStrategy } from '@firebreak/core'
import { fakeRuntime } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { KeyLimit } from './key-limit.ts'

function limitOf(more: Partial<RateLimitStrategy>, runtime = fakeRuntime()): KeyLimit {
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 10,
    windowMs: 1000,
    onLimit: 'reject',
    scope: 'process',
    ...more,
  }
  const bounds = { processes: 1, maxWaiting: 100, maxWaitMs: 1000, deadlineMs: 50 }
  return new KeyLimit({ ...bounds, key: 'k', serviceId: 's', strategy, redis: undefined, runtime, onRefused() {} })
}

/** How many of a number of simultaneous accesses are let through, at once or later. */
function admitted(limit: KeyLimit, count: number, caller?: string): number {
  let admittedCount = 0
  for (let index = 0; index < count; index++) {
    const answer = limit.admit(true, undefined, caller === undefined ? undefined : () => caller)
    if (answer === undefined || answer instanceof Promise) admittedCount++
  }
  return admittedCount
}

describe.each(limitAlgorithms)('%s', (algorithm) => {
  test('lets through exactly as many calls as the limit allows', () => {
    // The queue admits one besides those that wait.
    expect(admitted(limitOf({ algorithm }), 50)).toBe(algorithm === 'leakyQueue' ? 11 : 10)
  })
})

test.each(['tokenBucket', 'leakyBucket', 'gcra'] as const)('%s has a burst of its own', (algorithm) => {
  const runtime = fakeRuntime()
  const limit = limitOf({ algorithm, burst: 3 }, runtime)
  expect(admitted(limit, 50)).toBe(3)
  runtime.clock.advance(100)
  // One in a tenth of a second, according to the rate.
  expect(admitted(limit, 50)).toBe(1)
})

test('each caller has its own limit, and unknown callers share one', () => {
  const limit = limitOf({ scope: 'process-caller' })
  expect([admitted(limit, 20, 'a'), admitted(limit, 20, 'b'), admitted(limit, 20, 'a')]).toEqual([10, 10, 0])
  expect([admitted(limit, 20), admitted(limit, 20)]).toEqual([10, 0])
})

test('a queue delays admitted calls, so that they are evenly spaced', async () => {
  const runtime = fakeRuntime()
  const limit = limitOf({ algorithm: 'leakyQueue', burst: 2 }, runtime)
  const times: number[] = []
  for (let index = 0; index < 3; index++) {
    const answer = limit.admit(true)
    if (answer instanceof Promise) void answer.then(() => times.push(Math.round(runtime.clock.now())))
  }
  const began = Math.round(runtime.clock.now())
  await runtime.clock.advanceAsync(250)
  expect(times.map((time) => time - began)).toEqual([100, 200])
})
