import { encodeBinaryReport } from '@firebreak/core'
import { expect, test } from 'vitest'
import { IngestShard } from './ingest-shard.ts'
import { rowFields, type ThreadAnswer } from './thread-messages.ts'

/** Gives a batch of one report to a shard. */
function take(
  shard: IngestShard,
  number: number,
  counts: Record<string, number>,
  { nearRate = Number.POSITIVE_INFINITY, nearNoMore = [] as string[], applied = 0, now = 1000 } = {},
): ThreadAnswer {
  const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes: 0, bytes: 0 }))
  const sections = [{ redisClusterId: 'main', entries }]
  const ids = { serviceId: 's', hostId: 'h', instanceId: 'i' }
  const bytes = encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections })
  const block = new SharedArrayBuffer(bytes.length)
  new Uint8Array(block).set(bytes)
  const reports = Float64Array.of(0, bytes.length, now)
  const gone = new Map([['main', nearNoMore]])
  return shard.handle({ kind: 'batch', number, block, reports, nearRate, nearNoMore: gone, applied })!
}

const rowsOf = ({ rows }: ThreadAnswer) => rows.length / rowFields
const one = { shard: 0, shardCount: 1, maxKeys: 10_000, hashSeed: 7 }

test('a key is sent from when it may be near on, until the main thread has let it go after its last row', () => {
  const shard = new IngestShard(one)
  expect(rowsOf(take(shard, 1, { k: 1 }))).toBe(0)
  expect(rowsOf(take(shard, 2, { k: 1 }, { nearRate: 0 }))).toBe(1)
  expect(rowsOf(take(shard, 3, { k: 1, other: 1 }))).toBe(1)
  // The main thread forgot it when it had seen batch 2, and may want it again by the row of batch 3.
  expect(rowsOf(take(shard, 4, { k: 1 }, { nearNoMore: ['k'], applied: 2 }))).toBe(1)
  expect(rowsOf(take(shard, 5, { k: 1 }, { nearNoMore: ['k'], applied: 4 }))).toBe(0)
  shard.handle({ kind: 'near', keys: [{ redisClusterId: 'main', id: 'k' }], now: 1000 })
  expect(rowsOf(take(shard, 6, { k: 1 }))).toBe(1)
})

test('a row has what the key had before, by slices', () => {
  const shard = new IngestShard(one)
  take(shard, 1, { k: 5 }, { now: 1000 })
  take(shard, 2, { k: 3 }, { now: 1150 })
  const { rows } = take(shard, 3, { k: 2 }, { now: 1160, nearRate: 0 })
  // Report, section, place of the key, count, writes, bytes, heat, window, near from; then the past.
  expect([...rows.subarray(4, 9)]).toEqual([2, 0, 0, 10, 1000])
  expect([...rows.subarray(10, 13)]).toEqual([3, 5, 0])
})

test('every key falls to one shard, and each has its share', () => {
  const counts = Object.fromEntries(Array.from({ length: 3000 }, (_, nth) => [`key-${nth}`, 1]))
  const sizes = [0, 1, 2].map((shard) => take(new IngestShard({ ...one, shard, shardCount: 3 }), 1, counts).size)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(3000)
  for (const size of sizes) expect(size).toBeGreaterThan(800)
})

test('the slots of entries are summed, and sent one by one where rules want them', () => {
  const shard = new IngestShard(one)
  take(shard, 1, { '{a}1': 2, '{a}2': 3 })
  const [sums] = shard.handle({ kind: 'sweep', now: 1100 })!.slotSums
  expect(sums).toMatchObject({ redisClusterId: 'main', at: 1000, pairs: Float64Array.of(15_495, 5) })
  shard.handle({ kind: 'rules', rules: [], hubCount: 1, wantsSlots: true })
  expect([...take(shard, 2, { '{a}1': 2, b: 1 }).slots]).toEqual([0, 0, 15_495, 2, 0, 0, 3300, 1])
})
