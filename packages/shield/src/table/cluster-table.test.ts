import { defaultLocalCache, type RateLimitStrategy, type TableEntry } from '@firebreak/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HotKey } from '../cache/hot-key.ts'
import { HotNames } from '../gate/hot-names.ts'
import { ClusterTable } from './cluster-table.ts'

const limit: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 1,
  windowMs: 1000,
  onLimit: 'reject',
  scope: 'process',
}

/** A table that only has names and counts the operations on them. */
function setUp(inside?: (key: string) => string[]) {
  const time = { now: 0, hubAheadMs: 1_000_000 }
  const names = new HotNames({ hashOf: () => 0, outside: (name) => name, make: () => ({}) as HotKey })
  const done = { sets: 0, deletes: 0 }
  const table = new ClusterTable({
    keys: {
      names,
      set: (name, handling) => {
        done.sets++
        const known = names.get(name)
        if (known === undefined) return names.add(name, handling)
        names.change(known, handling)
        return known
      },
      delete: (name) => {
        done.deletes++
        names.remove(name)
      },
    },
    accesses: { inside: inside ?? ((key) => [key]) },
    clock: { now: () => time.now },
    hubNow: () => time.now + time.hubAheadMs,
    isRedacting: inside !== undefined,
  })
  const entry = (key: string, lastsMs = 60_000, strategy: TableEntry['strategy'] = defaultLocalCache): TableEntry => ({
    redisClusterId: 'main',
    key,
    strategy,
    ruleId: 'r',
    reason: '',
    since: 0,
    until: time.now + time.hubAheadMs + lastsMs,
  })
  const hot = () => [...names.values()].map(({ name }) => name).sort()
  const pass = (ms: number) => {
    for (const end = time.now + ms; time.now < end; ) {
      time.now += 50
      table.tick()
    }
  }
  return { table, names, time, done, entry, hot, pass }
}

test('a change affects only what it names, and the end of a change affects nothing', () => {
  const { table, done, entry, pass } = setUp()
  table.reset(Array.from({ length: 10_000 }, (_, index) => entry(`k${index}`, 3_600_000)))
  expect(done).toEqual({ sets: 10_000, deletes: 0 })
  table.set(entry('k5', 7_200_000))
  table.remove('k6')
  table.remove('unknown')
  pass(120_000)
  expect(done).toEqual({ sets: 10_001, deletes: 1 })
})

test('an entry lapses at its time on the hub’s clock, and later if it was extended, even if the hub’s clock is set', () => {
  const { table, time, entry, hot, pass } = setUp()
  table.reset([entry('short', 1000), entry('long', 90_000), entry('extended', 1000)])
  table.set(entry('extended', 5000))
  pass(950)
  expect(hot()).toEqual(['extended', 'long', 'short'])
  pass(100)
  expect(hot()).toEqual(['extended', 'long'])
  pass(4000)
  expect(hot()).toEqual(['long'])
  time.hubAheadMs += 85_000
  pass(60_000)
  expect(hot()).toEqual([])
})

test('an entry whose time was shortened lapses at the new one', () => {
  const { table, entry, hot, pass } = setUp()
  table.set(entry('k', 50_000))
  table.set(entry('k', 1000))
  pass(1100)
  expect(hot()).toEqual([])
})

test('a claim of this process ends on its own, and belongs to the table once the table has the key', () => {
  const { table, entry, hot, pass } = setUp()
  const crossing = { ruleId: 'r', heat: 1, strategy: defaultLocalCache }
  expect([table.claim('a', crossing), table.claim('a', crossing), table.claim('b', crossing)]).toEqual([
    true,
    false,
    true,
  ])
  table.reset([])
  table.remove('a')
  expect(hot()).toEqual(['a', 'b'])
  table.set(entry('b', 10_000))
  expect(table.claim('b', crossing)).toBe(false)
  pass(3100)
  expect(hot()).toEqual(['b'])
  table.remove('b')
  expect(hot()).toEqual([])
})

test('limits end without a hub, and return with it', () => {
  const { table, entry, hot } = setUp()
  const entries = [entry('cached'), entry('limited', 60_000, limit)]
  table.reset(entries)
  table.setLimitsLapsed(true, () => entries)
  expect(hot()).toEqual(['cached'])
  table.set(entry('limited too', 60_000, limit))
  expect(hot()).toEqual(['cached'])
  table.setLimitsLapsed(false, () => [...entries, entry('limited too', 60_000, limit)])
  expect(hot()).toEqual(['cached', 'limited', 'limited too'])
})

test('keys with redacted names are hot as long as the entry of their redacted name is there', () => {
  const { table, entry, hot } = setUp((key) => [`${key}1`, `${key}2`])
  table.set(entry('user:'))
  table.seen('user:3', entry('user:'))
  expect(hot()).toEqual(['user:1', 'user:2', 'user:3'])
  table.reset([entry('cart:')])
  expect(hot()).toEqual(['cart:1', 'cart:2'])
  table.remove('cart:')
  expect(hot()).toEqual([])
})

test('changes one by one have the same result as a whole table', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.record({ key, lastsMs: fc.integer({ min: 0, max: 3000 }), kind: fc.nat(3), passMs: fc.nat(500) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const changed = setUp()
      const oracle = new Map<string, number>()
      for (const { key: name, lastsMs, kind, passMs } of steps) {
        if (kind === 0) {
          changed.table.remove(name)
          oracle.delete(name)
        } else {
          const entry = changed.entry(name, lastsMs)
          if (kind === 1) {
            changed.table.reset([entry])
            oracle.clear()
          } else changed.table.set(entry)
          oracle.set(name, entry.until)
        }
        changed.pass(passMs)
        const hubNow = changed.time.now + changed.time.hubAheadMs
        const hot = changed.hot()
        // A tick late at most.
        for (const [other, until] of oracle) if (until > hubNow) expect(hot).toContain(other)
        for (const other of hot) expect(oracle.get(other) ?? 0).toBeGreaterThan(hubNow - 100)
      }
    }),
  )
})
