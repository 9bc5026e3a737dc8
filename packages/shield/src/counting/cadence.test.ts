import { expect, test } from 'vitest'
import { Cadence } from './cadence.ts'

test('a busy process reports every interval, a quiet one up to five times less often', () => {
  const cadence = new Cadence(0)
  expect(cadence.isDue(50, 1000)).toBe(false)
  expect(cadence.isDue(100, 1000)).toBe(true)
  expect(cadence.isDue(100, 1)).toBe(false)
  expect(cadence.isDue(499, 1)).toBe(false)
  expect(cadence.isDue(500, 1)).toBe(true)
  expect(cadence.isDue(5000, 0)).toBe(false)
})

test('a key that grows fast is reported at once, but not more often than every 10 ms', () => {
  const cadence = new Cadence(0)
  cadence.burst()
  expect(cadence.burstDelayMs(3)).toBe(7)
  expect(cadence.burstDelayMs(30)).toBe(0)
  expect(cadence.isDue(9, 200)).toBe(false)
  expect(cadence.isDue(10, 200)).toBe(true)
  cadence.reported(10)
  expect(cadence.isDue(30, 200)).toBe(false)
})
