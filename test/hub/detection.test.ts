import { HubCore, MemoryStore, openRedisStore } from '@firebreak/hub'
import {
  type DetectionOptions,
  type DetectionRule,
  HubDetector,
  isFullRun,
  replayDetection,
  restlessTrace,
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

function openThreeHubs(rule: DetectionRule, url: string): Promise<HubDetector> {
  return HubDetector.open(rule, 3, async ({ options, sharedClock }) =>
    HubCore.open(await openRedisStore(url, { testClock: sharedClock }), options),
  )
}

async function expectAllFound(open: (rule: DetectionRule) => Promise<HubDetector>): Promise<void> {
  const result = await replayDetection(trace, fleet, open)
  expect(result.wanted).toBeGreaterThan(100)
  expect(result).toMatchObject({ recall: 1, falseAlarms: 0 })
  if (isFullRun) expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(20)
}

test('one hub finds every key at 1.5 thresholds and none below 0.67, though hot keys move and bursts die', async () => {
  await expectAllFound((rule) => HubDetector.open(rule, 1, ({ options }) => HubCore.open(new MemoryStore(), options)))
})

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
