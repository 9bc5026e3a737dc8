import type { HistoryEvent } from '@firebreak/core'
import { expect, test } from 'vitest'
import { EventQuota, eventBytesPerDay, leftOutEpisodes } from './event-quota.ts'

const hourMs = 3_600_000
const start = 1000 * hourMs

function event(kind: HistoryEvent['kind'], key: string, at: number): HistoryEvent {
  return { at, kind, redisClusterId: 'main', key, ruleId: 'r', text: 'x'.repeat(80) }
}

/** Keys that are hot again and again, by turns; gives what was kept. */
function flap(quota: EventQuota, keys: readonly string[], everyMs: number, untilMs: number): HistoryEvent[] {
  const kept: HistoryEvent[] = []
  for (let at = start; at < untilMs; at += everyMs) {
    const told = quota.told(at)
    if (told !== undefined) kept.push(told)
    for (const key of keys) {
      const step = Math.floor((at - start) / everyMs)
      const kinds = (['hot', 'delivered', 'extended', 'cooled'] as const)[step % 4]!
      const one = event(kinds, key, at)
      if (quota.keeps(one)) kept.push(one)
    }
  }
  return kept
}

test('what says that a key stays hot is not kept', () => {
  const quota = new EventQuota(() => 1e9)
  expect(['hot', 'extended', 'cooled'].map((kind) => quota.keeps(event(kind as 'hot', 'k', start)))).toEqual([
    true,
    false,
    true,
  ])
})

test('of a key that flaps the first episodes of each hour are kept, whole, and the others are told', () => {
  const quota = new EventQuota(() => 1e9)
  const kept = flap(quota, ['k'], 1000, start + 2 * hourMs + 1000)
  const hot = kept.filter(({ kind }) => kind === 'hot')
  expect(hot).toHaveLength(41)
  expect(kept.filter(({ kind }) => kind === 'cooled')).toHaveLength(40)
  expect(kept.filter(({ kind }) => kind === 'leftOut').map(leftOutEpisodes)).toEqual([880, 880])
  expect(kept.at(-2)?.text ?? '').toMatch(/^880 times that a key was hot/)
  // The keys of others are not left out for it.
  expect(quota.keeps(event('hot', 'other', start + 3 * hourMs))).toBe(true)
})

test('a flood of keys stays within the bytes of a day and a burst, and each kept episode has its end', () => {
  const perDay = eventBytesPerDay(8 * 1024 * 1024)
  const quota = new EventQuota(() => perDay)
  const keys = Array.from({ length: 250 }, (_, index) => `k${index}`)
  const kept = flap(quota, keys, 60_000, start + 24 * hourMs)
  const bytes = kept.reduce((sum, one) => sum + JSON.stringify(one).length, 0)
  expect(bytes).toBeLessThan(perDay * 1.4)
  expect(quota.keptBytes).toBeGreaterThan(perDay)
  const count = (kind: string) => kept.filter((one) => one.kind === kind).length
  expect(count('hot') - count('cooled')).toBeLessThanOrEqual(keys.length)
  expect(kept.reduce((sum, one) => sum + leftOutEpisodes(one), 0)).toBeGreaterThan(count('hot'))
})
