import { expect, test } from 'vitest'
import { verdictOf } from './verdict.ts'

const facts = {
  isOff: false,
  hasReporters: true,
  hot: { handled: 2, observed: 0, unhandled: 0 },
  critical: undefined,
}

test('reads from memory and refused ones never reach Redis; those of copies do, on another node', () => {
  const rate = { at: 0, redis: 100, local: 700, copies: 100, limited: 100, writes: 5 }
  expect(verdictOf({ ...facts, rate }).verdict).toBe(
    'Safe: 2 keys are hot and handled; 80 % of all reads never reach Redis.',
  )
  const copied = { ...rate, local: 0, limited: 0 }
  expect(verdictOf({ ...facts, rate: copied }).verdict).toBe('Safe: 2 keys are hot and handled.')
})
