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

const wide = { columns: 200, rows: 40, isColored: false }

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
  expect(text).toMatch(/product_100 +4,120 +100\.0% +▁▄█ +hot +Observe +hot because rule `product`/)
})

test('a verdict and an alarm that are longer than the terminal go on in the next line, and have no edge in a pipe', () => {
  const verdict = `Not safe: 1 key is hot, not handled: no process that uses it has a link to this hub. Check that they run.`
  const alarms = [{ cause: `key ${'k'.repeat(30)} takes 80 % of all accesses and rule night only observes` }] as never
  const of = (columns: number) => renderTop({ ...overview, verdict, alarms }, { columns, rows: 40, isColored: false })
  expect(of(60).replaceAll('\n', ' ')).toContain(verdict)
  expect(of(60).replaceAll('\n', ' ')).toContain('rule night only observes')
  expect(of(Number.POSITIVE_INFINITY)).toContain(`${verdict}\n`)
})

test('a key of wide signs takes the columns that it has', () => {
  const row = renderTop({ ...overview, keys: [{ ...key, key: encodeURIComponent('热'.repeat(40)) }] }, wide).split(
    '\n',
  )[4]
  expect(row).toMatch(/^热{7}…热{6} {2}/)
})

test('no line is wider than the terminal, colours or not', () => {
  for (const isColored of [true, false]) {
    const text = renderTop(overview, { columns: 50, rows: 40, isColored })
    const widths = text.split('\n').map((line) => line.replaceAll(/\u001b\[\d+m/g, '').length)
    expect(Math.max(...widths)).toBeLessThanOrEqual(50)
  }
})

test('equal names of two clusters are told apart, and a long name loses its middle', () => {
  const long = `session:${'x'.repeat(80)}:tail`
  const keys = [key, { ...key, redisClusterId: 'eu' }, { ...key, key: long }]
  const text = renderTop({ ...overview, keys }, { columns: 200, rows: 40, isColored: false })
  expect(text).toMatch(/product_100 +main +4,120/)
  expect(text).toMatch(/product_100 +eu +4,120/)
  expect(text).toMatch(/session:x+…x+:tail main /)
  expect(renderTop(overview, { columns: 200, rows: 40, isColored: false })).not.toContain('CLUSTER')
})

test('a lost hub takes the verdict back', () => {
  const lost = { heardAt: new Date(), message: 'no hub answers' }
  const text = renderTop(overview, { columns: 200, rows: 40, isColored: false }, undefined, undefined, { lost })
  expect(text).not.toContain('Safe')
  expect(text).toMatch(/^Unknown: figures of \d\d:\d\d:\d\d, trying again; no hub answers\n/)
  expect(text).toContain('product_100')
})
