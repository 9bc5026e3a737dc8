import type { Finding } from '@firebreak/find'
import { FakeClock, fakeRuntime, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { TrafficMeter } from '../fleet/traffic-meter.ts'
import { SlotHeat } from '../heat/slot-heat.ts'
import { startHub } from '../start-hub.ts'
import { EngineSensor, type EngineView } from './engine-sensor.ts'

const finding = (parts: Partial<Finding>): Finding => ({
  version: 1,
  id: 'f',
  kind: 'slots',
  method: 'slot-stats',
  startedAtMs: 0,
  tookMs: 1000,
  source: [],
  topology: 'cluster',
  isComplete: true,
  scanned: 0,
  keys: [],
  notes: [],
  ...parts,
})

test('the load that no sensor reports is what the servers count beyond what reached them by the reports', async () => {
  const slots = new SlotHeat()
  const traffic = new TrafficMeter()
  slots.add('main', 7, 600, 10_500)
  // Half of what is reported is answered by shields.
  traffic.add(7000, 11_000, { redis: 1200, local: 1200, copies: 0, limited: 0, writes: 0 })
  const node = { slots: 8192, share: 0.5, skew: 1 }
  const load = finding({
    nodes: [
      { node: 'a:1', operationsPerSecond: 900, ...node },
      { node: 'b:1', operationsPerSecond: 300, ...node },
    ],
    slots: [{ slot: 7, node: 'a:1', share: 0.7, cpuMicrosecondsPerSecond: 5000 }],
  })
  const hot = finding({ kind: 'hot', method: 'server', keys: [{ key: 'k', node: 'a:1', accessesPerSecond: 800 }] })
  const questions = { slots: async () => load, hotKeys: async () => hot }
  const options = {
    redisClusterId: 'main',
    url: 'redis://a:1',
    slots,
    traffic,
    runtime: fakeRuntime(1, new FakeClock(11_500)),
    questions,
  }
  const sensor = new EngineSensor(options)
  await sensor.ask()
  expect(sensor.view).toMatchObject({
    nodes: [
      { node: 'a:1', operationsPerSecond: 900, reportedPerSecond: 225, unreportedShare: 0.75 },
      { node: 'b:1', operationsPerSecond: 300, reportedPerSecond: 75, unreportedShare: 0.75 },
    ],
    slots: [{ slot: 7 }],
    hotKeys: [{ key: 'k', accessesPerSecond: 800 }],
    notes: [],
  })
})

test('a hub asks its engines, and a server without HOTKEYS is noted, not an error', async () => {
  const redis = await startRedis()
  const client = new Redis(redis.port)
  const timer = setInterval(() => void client.get('k'), 5)
  const engines = [`main=${redis.url}`]
  const hub = await startHub({ engines, logLevel: 'silent' })
  const view = await waitFor(async () => {
    const answer = (await (await fetch(`${hub.url}/v1/engines`)).json()) as { engines: EngineView[] }
    return answer.engines[0]
  })
  expect(view.redisClusterId).toBe('main')
  expect(view.nodes[0]!.operationsPerSecond).toBeGreaterThan(5)
  expect(view.nodes[0]!.unreportedShare).toBe(1)
  expect(view.notes.join('\n')).toContain('has no HOTKEYS')
  clearInterval(timer)
  client.disconnect()
  await hub.close()
  await redis.stop()
})

test('an engine without a name is refused', async () => {
  await expect(startHub({ engines: ['redis://127.0.0.1:1'] })).rejects.toThrow(/engines/)
})
