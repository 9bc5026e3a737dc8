import { expect, test } from 'vitest'
import { NodeHealth } from './node-health.ts'

function counted(replies: readonly string[]): Record<string, number> {
  const health = new NodeHealth()
  for (const reply of replies) {
    const bytes = Buffer.from(`+OK\r\n${reply}`, 'latin1')
    health.onErrorReply(bytes, 5, bytes.length)
  }
  return Object.fromEntries(health.errorCounts)
}

test('an error is counted by its first word', () => {
  const replies = ['-ERR no such key\r\n', '-ERR\r\n', '-MOVED 1 h:1\r\n', '-lower case\r\n', 'e\r\n', '-\r\n']
  expect(counted(replies)).toEqual({ ERR: 2, MOVED: 1, other: 3 })
})

test('long words are cut, and endless different words share one count', () => {
  expect(counted([`-${'A'.repeat(500)} x\r\n`])).toEqual({ ['A'.repeat(20)]: 1 })
  const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(65 + index))
  const words = letters.flatMap((first) => letters.map((second) => `-${first}${second} x\r\n`))
  const counts = counted([...words, ...words])
  expect(Object.keys(counts)).toHaveLength(33)
  expect(counts['AA']).toBe(2)
  expect(counts['other']).toBe(2 * (words.length - 32))
})

test('a user that Redis refuses does not count as a lost connection, but is a reason to ask', () => {
  const health = new NodeHealth()
  health.isInDoubt = false
  health.onLost(true)
  expect([health.lostCount, health.isInDoubt]).toEqual([0, true])
  health.onLost(false)
  expect(health.lostCount).toBe(1)
})
