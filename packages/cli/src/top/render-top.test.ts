import type { KeyView, Overview } from '@firebreak/core'
import { expect, test } from 'vitest'
import { renderTop } from './render-top.ts'

const key: KeyView = {
  redisClusterId: 'main',
  key: 'product_100',
  state: 'hot',
  ratePerSecond: 4120,
  writesPerSecond: 0,
  bytesPerSecond: 0,
  share: 0.713,
  sparkline: [0, 2000, 4120],
  errorPerSecond: 0,
  hosts: 4,
  slot: 1,
  ruleId: 'product',
  strategy: { strategy: 'Observe' },
  reason: 'hot because rule `product`: 4,120/s over 1 s ≥ 1,000',
  since: 1,
  effect: null,
}

const overview: Overview = {
  hubTime: 2,
  hubId: 'hub-1',
  isOff: false,
  isSafe: true,
  verdict: 'Safe: 1 hot key is handled',
  table: { epoch: 'a', version: 1 },
  sensors: { connected: 4, hosts: 1, services: 1 },
  rate: { at: 1, redis: 100, local: 4000, copies: 0, limited: 0, writes: 5 },
  traffic: [],
  keys: [key],
  alarms: [],
  ingest: { reportsPerSecond: 0, entriesPerSecond: 0, refused: {}, trackedKeys: 1, memoryBytes: 0 },
}

test('the screen names the verdict, the key, its rate, state and reason', () => {
  const text = renderTop(overview, { columns: 200, rows: 40, isColored: false })
  expect(text).toContain('Safe: 1 hot key is handled')
  expect(text).toContain('memory 97.6%')
  expect(text).toMatch(/product_100 +4,120 +71\.3% +▁▄█ +hot +Observe +hot because rule `product`/)
})

test('no line is wider than the terminal, colours or not', () => {
  for (const isColored of [true, false]) {
    const text = renderTop(overview, { columns: 50, rows: 40, isColored })
    const widths = text.split('\n').map((line) => line.replaceAll(/\u001b\[\d+m/g, '').length)
    expect(Math.max(...widths)).toBeLessThanOrEqual(50)
  }
})
