import { BinaryReportCursor, encodeBinaryReport, keyBytes, type Report } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { parseRule } from '@firebreak/core/rules'
import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CountedClusters, type CountedClustersOptions } from './counted-clusters.ts'
import { type CountListener, latin1, type NearRow } from './counted-keys.ts'

const startMs = 1_700_000_000_000
const rules = [
  parseRule({ id: 'short', prefix: 's', threshold: 100, windowMs: 1000 }),
  parseRule({ id: 'long', prefix: 'l', threshold: 100, windowMs: 3000 }),
]

interface SeenRow {
  readonly id: string
  readonly near: string | undefined
  readonly heat: number
}

/** One shard, which keeps the rows that it is told of. */
class Counting implements CountListener<string> {
  readonly keys: CountedClusters<string>
  nearRate = Number.POSITIVE_INFINITY
  readonly wantsPast = true
  rows: SeenRow[] = []
  slots = new Map<number, number>()
  #prefix = ''
  #bytes: Uint8Array = new Uint8Array(0)

  constructor(options: Partial<CountedClustersOptions> = {}) {
    this.keys = new CountedClusters({ maxKeys: 100_000, hashSeed: 5, ...options })
    this.keys.setRules(rules, 1)
  }

  /** Counts one report and gives its rows. */
  take(sections: Report['sections'], now: number): SeenRow[] {
    const ids = { serviceId: 'shop', hostId: 'host', instanceId: 'one' }
    this.#bytes = encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections })
    this.rows = []
    const cursor = new BinaryReportCursor(this.#bytes)
    while (cursor.nextSection()) {
      this.#prefix = `${cursor.redisClusterId} `
      this.keys.keysOf(cursor.redisClusterId, now)!.addSection(cursor, now, this)
    }
    return this.rows
  }

  onRow({ near, keyStart, keyEnd, count, heat, past }: NearRow<string>): void {
    this.rows.push({ id: this.#prefix + latin1(this.#bytes, keyStart, keyEnd), near, heat })
    // The past is what the heat is made of, but for this entry.
    expect(past.subarray(0, -1).reduce((sum, slice) => sum + slice)).toBe(heat - count)
  }

  onSlot(slot: number, count: number): void {
    this.slots.set(slot, (this.slots.get(slot) ?? 0) + count)
  }
}

const one = (counts: Record<string, number>): Report['sections'] => [
  { redisClusterId: 'main', entries: Object.entries(counts).map(([key, count]) => entry(key, count)) },
]
const entry = (key: string, count: number) => ({ key, count, writes: 0, bytes: 0 })

const key = fc.oneof(
  fc.tuple(fc.constantFrom('s', 'l', 'x'), fc.nat(15)).map(([rule, id]) => `${rule}${id}`),
  fc.string(),
)
const section = fc.record({
  redisClusterId: fc.constantFrom('a', 'b'),
  entries: fc.array(fc.record({ key, count: fc.integer({ min: 1, max: 80 }) }), { maxLength: 90 }),
})
const step = fc.record({ ms: fc.nat(400), sections: fc.array(section, { maxLength: 3 }), sweeps: fc.boolean() })

test('any reports, at any times, on any number of shards: rows are of the keys that an exact count finds near, with its heat', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), fc.constantFrom(1, 2, 3), fc.nat(300), (steps, shardCount, rate) => {
      const shards = Array.from({ length: shardCount }, (_, shard) => new Counting({ shard, shardCount }))
      const log: { ms: number; id: string; count: number }[] = []
      const slots = new Map<number, number>()
      // The windows of a cluster begin with its first report, and their slices with them.
      const began = new Map<string, number>()
      let ms = 0
      for (const { ms: passed, sections, sweeps } of steps) {
        ms += passed
        const expected: SeenRow[] = []
        for (const { redisClusterId, entries } of sections) {
          if (!began.has(redisClusterId)) began.set(redisClusterId, ms)
          for (const { key: name, count } of entries) {
            const id = `${redisClusterId} ${latin1(keyBytes(name))}`
            log.push({ ms, id, count })
            slots.set(keySlot(name), (slots.get(keySlot(name)) ?? 0) + count)
            const windowMs = name.startsWith('l') ? 3000 : 1000
            const slice = (at: number) => Math.floor((at - began.get(redisClusterId)!) / (windowMs / 10))
            const heat = log
              .filter((past) => past.id === id && slice(past.ms) > slice(ms) - 10)
              .reduce((sum, past) => sum + past.count, 0)
            // From half of its threshold on; a key of no rule only by its rate.
            const isByRule = /^[sl]/.test(name) && heat >= 50
            if (isByRule || (heat * 1000) / windowMs > rate) expected.push({ id, near: undefined, heat })
          }
        }
        const all = sections.map(({ redisClusterId, entries }) => ({
          redisClusterId,
          entries: entries.map(({ key: name, count }) => entry(name, count)),
        }))
        for (const shard of shards) {
          shard.nearRate = rate
          shard.take(all, startMs + ms)
          if (sweeps) shard.keys.sweep(startMs + ms)
        }
        const byId = (rows: readonly SeenRow[]) => rows.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
        expect(byId(shards.flatMap(({ rows }) => rows))).toEqual(byId(expected))
      }
      for (const [slot, count] of slots) {
        expect(shards.reduce((sum, shard) => sum + (shard.slots.get(slot) ?? 0), 0)).toBe(count)
      }
    }),
    { numRuns: scale(40, 400) },
  )
})

test('all rows of a near key are told, until it is near no more', () => {
  const counting = new Counting()
  expect(counting.take(one({ s1: 10 }), startMs)).toEqual([])
  counting.keys.addNear('main', 's1', 'mine', startMs)
  expect(counting.take(one({ s1: 1, s2: 1 }), startMs)).toEqual([{ id: 'main s1', near: 'mine', heat: 11 }])
  counting.keys.removeNear('main', 's1')
  expect(counting.take(one({ s1: 1 }), startMs)).toEqual([])
})

test('a near key is known again though its count was forgotten, or never was', () => {
  const counting = new Counting({ maxKeys: 50 })
  counting.keys.addNear('main', 's1', 'before its first report', startMs)
  expect(counting.take(one({ s1: 1 }), startMs)).toMatchObject([{ near: 'before its first report' }])
  // Forgotten because it was idle.
  counting.keys.sweep(startMs + 60_000)
  expect(counting.keys.size).toBe(0)
  expect(counting.take(one({ s1: 1 }), startMs + 60_000)).toMatchObject([{ near: 'before its first report', heat: 1 }])
  // Forgotten for other keys, of which there is no end.
  const flood = Object.fromEntries(Array.from({ length: 2000 }, (_, id) => [`x${id}`, 2]))
  counting.take(one(flood), startMs + 60_001)
  expect(counting.keys.size).toBe(50)
  expect(counting.take(one({ s1: 1 }), startMs + 60_002)).toMatchObject([{ near: 'before its first report' }])
  expect(counting.keys.overflowCount).toBe(0)
})

test('an index that goes to another key takes nothing along', () => {
  const counting = new Counting()
  counting.take(one({ s1: 1 }), startMs)
  counting.keys.addNear('main', 's1', 'mine', startMs)
  counting.keys.sweep(startMs + 5000)
  expect(counting.take(one({ s2: 1 }), startMs + 5000)).toEqual([])
  counting.keys.removeNear('main', 's1')
  expect(counting.take(one({ s1: 1 }), startMs + 5000)).toEqual([])
})

test('what finds no room is counted: keys too long, clusters too many', () => {
  const counting = new Counting()
  counting.take(one({ ['k'.repeat(70_000)]: 1 }), startMs)
  expect(counting.keys.overflowCount).toBe(1)
  for (let id = 0; id < 1000; id++) counting.keys.keysOf(`cluster-${id}`, startMs)
  expect(counting.keys.overflowCount).toBe(2)
  // A cluster without keys is given up, its count of what found no room is not.
  counting.keys.sweep(startMs + 5000)
  expect(counting.keys.overflowCount).toBe(2)
  expect(counting.keys.keysOf('one-more', startMs)).toBeDefined()
})

test('many long names take no more memory than the keys that may be counted, and short ones are counted beside them', () => {
  const megabyte = 1024 * 1024
  const counting = new Counting({ maxKeys: 100_000 })
  const name = 'x'.repeat(60_000)
  // 60 MB in two clusters, all within one window.
  for (let nth = 0; nth < 1000; nth++) {
    counting.take([{ redisClusterId: `c${nth % 2}`, entries: [entry(`l${nth}${name}`, 1)] }], startMs)
  }
  // 128 bytes a key, and what the tables of another cluster begin with.
  expect(counting.keys.memoryBytes).toBeLessThan(100_000 * 128 + 8 * megabyte)
  expect(counting.take(one({ short: 500 }), startMs + 1)).toHaveLength(1)
})
