import { expect, test } from 'vitest'
import { ThreadCounts } from './thread-counts.ts'

test('threads share one limit, and the share of a thread ends with it', () => {
  const memory = ThreadCounts.memoryFor(2)
  const [one, two] = [new ThreadCounts(0, memory), new ThreadCounts(1, memory)]
  expect([one.admit(3), one.admit(3), two.admit(3), two.admit(3), one.admit(3)]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect([one.clients, two.clients]).toEqual([3, 3])
  two.dismiss()
  expect(one.admit(3)).toBe(true)
  one.forget()
  expect(two.clients).toBe(0)
  expect(two.admit(1)).toBe(true)
})

test('the unread amount is the sum over threads', () => {
  const memory = ThreadCounts.memoryFor(2)
  const [one, two] = [new ThreadCounts(0, memory), new ThreadCounts(1, memory)]
  expect(one.weigh(10_000_000_000)).toBe(10_000_000_000)
  expect(two.weigh(2048)).toBe(10_000_002_048)
  one.forget()
  expect(two.weigh(0)).toBe(0)
})
