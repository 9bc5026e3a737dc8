import type { HistoryEvent, KeyEffect, Strategy, TableEntry } from '@firebreak/core'
import { expect, test } from 'vitest'
import { EpisodeSteps } from './episode-steps.ts'

function stepsOf(strategy: Strategy['strategy']) {
  const events: HistoryEvent[] = []
  const steps = new EpisodeSteps({ clock: { now: () => 5 }, record: (event) => events.push(event) })
  const entry = { redisClusterId: 'main', key: 'k', ruleId: 'r', strategy: { strategy } } as TableEntry
  steps.delivered(entry, ['shop'], 2)
  const tell = (changes: Partial<KeyEffect>) => {
    const nothing = { localHits: 0, redisReads: 0, bytesSaved: 0, limited: 0, errors: 0, ruleId: 'r' }
    steps.effect({ redisClusterId: 'main', key: 'k', ...nothing, ...changes }, 'host-1')
    return events.filter(({ kind }) => kind === 'handled').map(({ text }) => text)
  }
  return tell
}

test.each([
  ['LocalCache', { redisReads: 9 }, { localHits: 1 }, 'host-1 answered the first reads by LocalCache'],
  ['RedundantKeys', { redisReads: 9 }, { copyReads: 3 }, 'host-1 read the first copies by RedundantKeys'],
  ['RateLimit', {}, { limited: 2 }, 'host-1 held the first requests to their limit by RateLimit'],
  ['RateLimit', {}, { redisReads: 2 }, 'host-1 held the first requests to their limit by RateLimit'],
  ['Combine', { redisReads: 9 }, { combined: 4 }, 'host-1 sent the first increments by Combine'],
] as const)('%s is handled when a process says that it carries it out', (strategy, before, effect, text) => {
  const tell = stepsOf(strategy)
  expect(tell(before)).toEqual([])
  // What another rule's strategy did before this one came says nothing of this one.
  expect(tell({ ...effect, ruleId: 'other' })).toEqual([])
  expect(tell(effect)).toEqual([text])
  expect(tell(effect)).toEqual([text])
})

test('what is only observed is never handled', () => {
  expect(stepsOf('Observe')({ redisReads: 9, localHits: 9 })).toEqual([])
})
