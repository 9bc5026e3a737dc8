import type { Overview } from '@firebreak/core'
import { waitFor } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Hub, type HubOptions, startHub } from './start-hub.ts'
import { TestSensor } from './testing/test-sensor.ts'

const product = { id: 'product', prefix: 'product_', threshold: 1000, strategy: 'LocalCache' }
const hubs: Hub[] = []

async function hubWith(options: HubOptions = {}): Promise<Hub> {
  const hub = await startHub({ logLevel: 'silent', initialRules: [product], ...options })
  hubs.push(hub)
  return hub
}

afterEach(async () => {
  await Promise.all(hubs.splice(0).map((hub) => hub.close()))
})

test('a key that is cold on each of four sensors becomes hot on all of them', async () => {
  const hub = await hubWith()
  const sensors = await Promise.all([1, 2, 3, 4].map((n) => TestSensor.connect(hub.url, { hostId: `host-${n}` })))
  for (const sensor of sensors) sensor.report({ product_1: 300, product_2: 20 })
  for (const sensor of sensors) {
    const entry = await waitFor(() => sensor.table.get('main', 'product_1'))
    expect(entry.strategy.strategy).toBe('LocalCache')
    expect(entry.reason).toMatch(/^hot because rule `product`: 1,200\/s over 1 s ≥ 1,000$/)
    expect(sensor.table.get('main', 'product_2')).toBeUndefined()
    expect(sensor.gaps).toEqual([])
  }
})

test('the overview shows the hot key with its reason, and the live socket pushes it', async () => {
  const hub = await hubWith()
  const live = new WebSocket(`${hub.url.replace('http', 'ws')}/v1/live`)
  const seen: Overview[] = []
  live.on('message', (data) => seen.push(JSON.parse(String(data)) as Overview))
  const sensor = await TestSensor.connect(hub.url)
  sensor.report({ product_1: 4120, cold: 5 })
  const shown = await waitFor(() => seen.find(({ keys }) => keys[0]?.state === 'hot'))
  live.close()
  expect(shown.keys[0]).toMatchObject({ key: 'product_1', ruleId: 'product', hosts: 1 })
  expect(shown.keys[0]?.reason).toBe('hot because rule `product`: 4,120/s over 1 s ≥ 1,000')
  const overview = (await (await fetch(`${hub.url}/v1/overview`)).json()) as Overview
  expect(overview.sensors).toEqual({ connected: 1, hosts: 1, services: 1 })
  expect(overview.verdict).toMatch(/1 key is hot/)
})
