import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defaultLocalCache, type TableEntry } from './strategy.ts'
import { StrategyTable, type TableDelta, toStrategyList } from './strategy-table.ts'

function entry(key: string, changes: Partial<TableEntry> = {}): TableEntry {
  return {
    redisClusterId: 'main',
    key,
    strategy: defaultLocalCache,
    ruleId: 'r',
    reason: 'hot',
    since: 0,
    until: 1000,
    ...changes,
  }
}

const empty = { entries: [], rules: [], isOff: false }

test('a snapshot is applied whole, an older one of the epoch ignored, one of a new epoch trusted', () => {
  const table = new StrategyTable()
  table.applySnapshot({ ...empty, epoch: 'a', version: 7, entries: [entry('x')] })
  expect(table.applySnapshot({ ...empty, epoch: 'a', version: 6 })).toEqual({ kind: 'known' })
  expect(table.size).toBe(1)
  expect(table.applySnapshot({ ...empty, epoch: 'b', version: 1 })).toEqual({ kind: 'applied' })
  expect(table.size).toBe(0)
})

test('a delta that does not fit is a gap and changes nothing', () => {
  const table = new StrategyTable()
  table.applySnapshot({ ...empty, epoch: 'a', version: 7 })
  const delta: TableDelta = { epoch: 'a', from: 8, to: 9, set: [entry('x')], removed: [] }
  expect(table.applyDelta(delta)).toEqual({ kind: 'gap' })
  expect(table.applyDelta({ ...delta, epoch: 'b', from: 7 })).toEqual({ kind: 'gap' })
  expect(table.applyDelta({ ...delta, from: 5, to: 6 })).toEqual({ kind: 'known' })
  expect(table.size).toBe(0)
  expect(table.applyDelta({ ...delta, from: 7 })).toEqual({ kind: 'applied' })
  expect(table.get('main', 'x')?.reason).toBe('hot')
})

test('any sequence of deltas in order results in the table of the last snapshot', () => {
  const change = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), isRemoved: fc.boolean(), until: fc.nat(99) })
  fc.assert(
    fc.property(fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 20 }), (steps) => {
      const table = new StrategyTable()
      table.applySnapshot({ ...empty, epoch: 'a', version: 0 })
      const oracle = new Map<string, number>()
      steps.forEach((changes, version) => {
        const last = new Map(changes.map((item) => [item.key, item]))
        const removed = [...last.values()]
          .filter(({ isRemoved }) => isRemoved)
          .map(({ key }) => ({ redisClusterId: 'main', key }))
        const set = [...last.values()]
          .filter(({ isRemoved }) => !isRemoved)
          .map(({ key, until }) => entry(key, { until }))
        for (const { key } of removed) oracle.delete(key)
        for (const { key, until } of set) oracle.set(key, until)
        table.applyDelta({ epoch: 'a', from: version, to: version + 1, set, removed })
      })
      expect(new Map([...table.entries()].map(({ key, until }) => [key, until]))).toEqual(oracle)
    }),
  )
})

test('the list for people groups keys by strategy', () => {
  const copies = { strategy: 'RedundantKeys', copies: ['product_100_1', 'product_100_2'], ttlJitterMs: 0 } as const
  expect(toStrategyList([entry('hotKey02'), entry('hotKey01'), entry('product_100', { strategy: copies })])).toEqual([
    { ...defaultLocalCache, keys: ['hotKey01', 'hotKey02'] },
    { strategy: 'RedundantKeys', keys: { product_100: ['product_100_1', 'product_100_2'] } },
  ])
})
