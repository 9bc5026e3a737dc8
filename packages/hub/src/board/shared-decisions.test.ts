import { version } from '@firebreak/core'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { SharedHubs } from '../testing/shared-hubs.ts'

let server: RedisServer
const opened: SharedHubs[] = []

beforeAll(async () => {
  server = await startRedis()
}, 60_000)

afterEach(async () => {
  await Promise.all(opened.splice(0).map((hubs) => hubs.close()))
})

afterAll(() => server.stop())

async function open(count: number, rule: object): Promise<SharedHubs> {
  const hubs = await SharedHubs.open(server.url, count, [rule])
  opened.push(hubs)
  return hubs
}

const rule = { id: 'r', prefix: 'k', threshold: 1000, windowMs: 1000, minHoldMs: 1000 }
const job = {
  id: 'j',
  redisClusterId: 'main',
  keys: ['k1'],
  services: [],
  at: 0,
  forMs: 30_000,
  values: {},
  who: 'ann',
}

test('a key that one of several hubs pre-warms is hot on all of them for the time asked for', async () => {
  const hubs = await open(2, rule)
  // The service that is to get it is known to the other hub only.
  hubs.report(1, { other: 1 })
  await hubs.advance(200)
  // They know of each other, with the processes that report to each.
  const others = hubs.cores.map((core) => core.keys.otherHubs)
  const told = { version, refusedReports: 0 }
  expect(others).toMatchObject([
    [{ hubId: 'hub-1', processes: 1, ...told }],
    [{ hubId: 'hub-0', processes: 0, ...told }],
  ])
  expect(hubs.cores[0]!.keys.prewarm(job)).toEqual({ warmed: 1, unmatched: [] })
  await hubs.advance(200)
  expect(hubs.entries('k1').map((entry) => entry?.reason)).toEqual(['pre-warmed by ann', 'pre-warmed by ann'])
  await hubs.advance(25_000)
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
  await hubs.advance(6000)
  expect(hubs.strategies('k1')).toEqual([undefined, undefined])
  const [warmed, cooled] = await hubs.events('k1')
  expect([warmed!.kind, warmed!.text, cooled!.kind]).toEqual(['prewarm', 'pre-warmed by ann', 'cooled'])
  expect(cooled!.at - warmed!.at).toBeGreaterThanOrEqual(30_000)
})

test('a pre-warming that one hub began is ended at another', async () => {
  const hubs = await open(2, rule)
  hubs.report(1, { other: 1 })
  await hubs.advance(200)
  expect(hubs.cores[0]!.keys.prewarm(job)).toEqual({ warmed: 1, unmatched: [] })
  await hubs.advance(2000)
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
  expect(hubs.cores[1]!.keys.endPrewarm('main', 'k1', 'bob')).toBe(true)
  await hubs.advance(6000)
  expect(hubs.strategies('k1')).toEqual([undefined, undefined])
})

test('a key that is pre-warmed over several hubs is at the first level that does something, on all of them', async () => {
  const levels = [
    { threshold: 10, strategy: 'Observe' },
    { threshold: 100_000, strategies: ['Observe', 'LocalCache'] },
  ]
  const hubs = await open(2, { id: 'r', prefix: 'k', windowMs: 1000, levels })
  hubs.report(1, { other: 1 })
  await hubs.advance(200)
  expect(hubs.cores[0]!.keys.prewarm(job)).toEqual({ warmed: 1, unmatched: [] })
  // Which cluster there is the other hub has told.
  const wish = { keys: ['k1'], services: [], isNow: true }
  expect(hubs.cores[0]!.keys.planPrewarm(wish)).toMatchObject({ redisClusterId: 'main', steps: [{ level: 2 }] })
  for (let n = 0; n < 5; n++) {
    hubs.report(1, { k1: 20 })
    await hubs.advance(1000)
  }
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
})

const trialRule = {
  id: 'r',
  prefix: 'k',
  windowMs: 1000,
  levels: [{ threshold: 20, strategies: ['LocalCache', 'Observe'] }],
}

/** A second of reads of `k1` at each hub, and what the caches there answered of them. */
async function oneSecond(hubs: SharedHubs, reads: readonly number[], localHits: readonly number[]): Promise<void> {
  for (let fifth = 0; fifth < 5; fifth++) {
    for (const [hub, count] of reads.entries()) hubs.report(hub, { k1: count / 5 })
    await hubs.advance(200)
  }
  for (const [hub, count] of reads.entries()) hubs.tell(hub, 'k1', localHits[hub]!, count - localHits[hub]!)
}

test('a strategy that does not help is rolled back on all hubs, by what their sensors tell together', async () => {
  const hubs = await open(2, trialRule)
  // Fifteen reads a second at one hub are too few to judge by; those of both are not.
  for (let second = 0; second < 3; second++) await oneSecond(hubs, [15, 15], [0, 0])
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
  for (let second = 0; second < 9; second++) await oneSecond(hubs, [15, 15], [0, 0])
  expect(hubs.strategies('k1')).toEqual(['Observe', 'Observe'])
  const told = (await hubs.events('k1')).filter(({ kind }) => kind === 'rollback')
  expect(told).toHaveLength(1)
  expect(told[0]!.text).toMatch(/^LocalCache is rolled back: it answered only 0\.0 % of \d+ reads; now Observe$/)
  // Neither hub tries it again.
  for (let second = 0; second < 12; second++) await oneSecond(hubs, [15, 15], [0, 0])
  expect(hubs.strategies('k1')).toEqual(['Observe', 'Observe'])
})

test('a strategy that helps the sensors of one hub is not rolled back because it does not help those of another', async () => {
  const hubs = await open(2, trialRule)
  for (let second = 0; second < 14; second++) await oneSecond(hubs, [200, 200], [0, 198])
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
})

test('a key that one process reports once a second, to one of several hubs, stays hot on all of them', async () => {
  const hubs = await open(2, { ...rule, threshold: 100 })
  for (let second = 0; second < 8; second++) {
    const now = hubs.clock.now()
    hubs.cores[0]!.collector.collectText(`# ${now},${now},shop,h1,interval=1000\n# main\nk1:200\n`, 1)
    await hubs.advance(1050)
  }
  expect((await hubs.events('k1')).map(({ kind }) => kind)).toEqual(['hot'])
  expect(hubs.strategies('k1')).toEqual(['LocalCache', 'LocalCache'])
  await hubs.advance(3000)
  expect(hubs.strategies('k1')).toEqual([undefined, undefined])
})
