import { expect, test } from 'vitest'
import { systemTimers } from './clock.ts'

test('a delay longer than Node’s maximum waits long instead of firing at once', async () => {
  const fired: string[] = []
  const timers = [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY].flatMap((delayMs) => [
    systemTimers.setTimeout(() => fired.push(`timeout ${delayMs}`), delayMs),
    systemTimers.setInterval(() => fired.push(`interval ${delayMs}`), delayMs),
  ])
  // Node fires an overflowing timer after a millisecond, before this one.
  await new Promise<void>((resolve) => void setTimeout(resolve, 20))
  for (const timer of timers) timer.cancel()
  expect(fired).toEqual([])
})
