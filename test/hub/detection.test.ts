import { HubCore, MemoryStore, openRedisStore } from '@firebreak/hub'
import {
  type DetectionOptions,
  type DetectionRule,
  HubDetector,
  isFullRun,
  loadTrace,
  replayDetection,
  restlessTrace,
  scale,
  startCluster,
  startRedis,
} from '@firebreak/testkit'
import { expect, test } from 'vitest'

/** Hot keys that change places, and bursts that are over within a fraction of a second. */
const trace = restlessTrace({
  requests: 1_000_000,
  keyCount: 30_000,
  exponent: 1,
  moveEvery: 120_000,
  burstShare: 0.1,
  burstKeys: 5,
  burstLength: 10_000,
})

/** The setting of the benchmark, or a quarter of it in a short run. */
const fleet: DetectionOptions = isFullRun
  ? { hosts: 1000, seconds: 20 }
  : { hosts: 200, seconds: 7, accessesPerSecond: 25_000, rowsPerSecond: 9750, hotKeys: 90 }

function openOneHub(rule: DetectionRule): Promise<HubDetector> {
  return HubDetector.open(rule, 1, ({ options }) => HubCore.open(new MemoryStore(), options))
}

function openThreeHubs(rule: DetectionRule, url: string): Promise<HubDetector> {
  return HubDetector.open(rule, 3, async ({ options, sharedClock }) =>
    HubCore.open(await openRedisStore(url, { testClock: sharedClock }), options),
  )
}

async function expectAllFound(open: (rule: DetectionRule) => Promise<HubDetector>): Promise<void> {
  const result = await replayDetection(trace, fleet, open)
  expect(result.wanted).toBeGreaterThan(100)
  expect(result).toMatchObject({ recall: 1, falseAlarms: 0 })
  if (isFullRun) expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(mostRows)
}

/** Twenty, and what the mean of random draws may be off. */
const mostRows = 20.2

test('one hub finds every key at 1.5 thresholds and none below 0.67, though hot keys move and bursts die', async () => {
  await expectAllFound(openOneHub)
})

test.each([1, 20, 200, 1000])(
  'on a trace split over %d hosts, all hot keys are found and no cold one is',
  async (hosts) => {
    const result = await replayDetection(loadTrace('orm-night'), { hosts, seconds: scale(8, 50) }, openOneHub)
    expect(result.wanted).toBeGreaterThan(100)
    expect(result.meanHotKeys).toBeGreaterThan(50)
    expect(result.recall).toBe(1)
    expect(result.falseAlarms).toBe(0)
    if (hosts === 1000) expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(mostRows)
  },
  300_000,
)

test('with a low threshold, where the factor may not rise, rows stay within bounds by sampling what is hot more thinly', async () => {
  // Of the recorded traces this one is the flattest: 350 keys are hot from some 131 accesses in 5 s on.
  const result = await replayDetection(loadTrace('web07'), { hosts: 1000, seconds: scale(8, 30) }, openOneHub)
  expect(result.recall).toBe(1)
  expect(result.falseAlarms).toBe(0)
  expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(mostRows)
}, 300_000)

test('a factor beyond what the threshold bears is what costs accuracy', async () => {
  // One row in ten accesses, far past 1 + T / 96: the replay must be able to see the harm.
  const greedy = await replayDetection(loadTrace('orm-night'), { hosts: 1000, seconds: 8, factor: 40 }, openOneHub)
  expect(greedy.rowsPerHostAndFlush).toBeLessThan(4)
  expect(greedy.recall === 1 && greedy.falseAlarms === 0).toBe(false)
}, 300_000)

test('three hubs that share the hosts and a Redis find what one hub finds', async () => {
  const redis = await startRedis()
  await expectAllFound((rule) => openThreeHubs(rule, redis.url))
  await redis.stop()
}, 300_000)

test('three hubs that share a Redis Cluster find what one hub finds', async () => {
  const cluster = await startCluster({ masters: 3 })
  const url = `redis://${cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`
  await expectAllFound((rule) => openThreeHubs(rule, url))
  await cluster.stop()
}, 300_000)
