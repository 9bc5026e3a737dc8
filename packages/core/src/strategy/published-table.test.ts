import { expect, test } from 'vitest'
import { readPublishedTable, toPublishedTable } from './published-table.ts'
import { defaultLocalCache, type Strategy, type TableEntry } from './strategy.ts'

const entry = (key: string, strategy: Strategy, more: Partial<TableEntry> = {}): TableEntry => ({
  redisClusterId: 'main',
  key,
  strategy,
  ruleId: 'r',
  reason: '',
  since: 0,
  until: 0,
  ...more,
})
const copies: Strategy = { strategy: 'RedundantKeys', copies: ['c#1', 'c#2'], ttlJitterMs: 5 }

test('a published table is read as each process should see it', () => {
  const entries = [
    entry('a:1', defaultLocalCache),
    entry('c', { ...copies, placed: ['c{x}', 'c{y}'] }),
    entry('mine', defaultLocalCache, { onlyInstance: 'me' }),
    entry('part', defaultLocalCache, { rollout: 100 }),
    entry('nobody', defaultLocalCache, { rollout: 0 }),
  ]
  const table = toPublishedTable(
    { epoch: 'e', version: 3, isOff: true, entries, rules: [] },
    { writtenAt: 1000, forMs: 60_000 },
  )
  // Others read the names used in Redis.
  expect(table.clusters['main']).toMatchObject([{ keys: ['a%3A1'] }, { keys: { c: ['c{x}', 'c{y}'] } }])
  const read = (instanceId: string) => readPublishedTable(JSON.stringify(table), instanceId)!.snapshot
  expect(read('me')).toMatchObject({ epoch: 'e', version: 3, isOff: true })
  expect(read('me').entries.map(({ key }) => key)).toEqual(['a%3A1', 'c', 'mine', 'part'])
  expect(read('you').entries.map(({ key }) => key)).toEqual(['a%3A1', 'c', 'part'])
  expect(read('me').entries[1]!.strategy).toEqual(copies)
  expect(read('me').entries[0]).toMatchObject({ strategy: defaultLocalCache, ruleId: 'r', until: 61_000 })
})

test('anything that is not a table is refused', () => {
  for (const text of ['', 'x', 'null', '[]', '{"epoch":1}', '{"epoch":"e","version":1}'])
    expect(readPublishedTable(text, 'me'), text).toBe(undefined)
  const odd = '{"epoch":"e","version":1,"validUntil":5,"clusters":{"m":[null,{"keys":null}]},"only":3,"rollouts":{}}'
  expect(readPublishedTable(odd, 'me')!.snapshot.entries).toEqual([])
})
