import { expect, test } from 'vitest'
import { crossingAt, highestAlone, judgeWrites, spread } from './drill-figures.ts'
import type { DrillNotes } from './drill-messages.ts'

const notes = (changes: Partial<DrillNotes>): DrillNotes => ({
  kind: 'notes',
  readsAt: [],
  versions: [],
  errors: 0,
  ...changes,
})

test('the crossing is where all clients together reach the threshold in the window', () => {
  const clients = [notes({ readsAt: [0, 100, 200] }), notes({ readsAt: [150, 1120] })]
  expect(crossingAt(clients, 4, 1000)).toBe(200)
  expect(crossingAt(clients, 4, 100)).toBe(undefined)
  expect(highestAlone(clients, 1000)).toBe(3)
})

test('a write is seen when a read gives it or a newer one', () => {
  const writes = [
    { version: 2, acknowledgedAt: 1000 },
    { version: 3, acknowledgedAt: 1100 },
  ]
  const client = notes({
    versions: [
      { version: 1, firstSeenAt: 10, lastBegunAt: 1001 },
      { version: 3, firstSeenAt: 1102, lastBegunAt: 2000 },
    ],
  })
  expect(judgeWrites([client], writes, 300)).toEqual({ seenMs: [102, 2], staleReads: 0 })
})

test('a read of the old value that began a lease after the acknowledgement is stale', () => {
  const client = notes({ versions: [{ version: 1, firstSeenAt: 10, lastBegunAt: 1400 }] })
  expect(judgeWrites([client], [{ version: 2, acknowledgedAt: 1000 }], 300).staleReads).toBe(1)
})

test('the spread of a hundred values', () => {
  expect(spread(Array.from({ length: 100 }, (_, index) => index + 1))).toEqual({ p50: 50, p99: 99, max: 100 })
})
