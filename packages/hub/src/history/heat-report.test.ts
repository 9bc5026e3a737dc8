import type { HotEpisode } from '@firebreak/core'
import { expect, test } from 'vitest'
import { episodesOf } from './episodes.ts'
import { heatReport, periodName, reportCsv, reportPeriod } from './heat-report.ts'

const day = 86_400_000
const monday = Date.UTC(2026, 10, 16)

const episode = (fields: Partial<HotEpisode>): HotEpisode => ({
  redisClusterId: 'main',
  key: 'k',
  ruleId: 'r',
  services: ['shop'],
  isShadow: false,
  strategies: ['LocalCache'],
  reason: '',
  detectedAt: monday,
  deliveredAt: monday,
  handledAt: monday,
  cooledAt: monday + 1000,
  end: 'cooled',
  steps: [],
  ...fields,
})

const report = (episodes: readonly HotEpisode[], by: 'day' | 'week' = 'week', on = '2026-W47') =>
  heatReport({
    period: reportPeriod(by, on)!,
    now: monday + 30 * day,
    rows: [],
    totals: { accesses: 0, writes: 0, bytes: 0, saved: 0 },
    coverage: 1,
    episodes,
  })

test('days and weeks have names, and names have periods', () => {
  expect([periodName('day', monday), periodName('week', monday)]).toEqual(['2026-11-16', '2026-W47'])
  expect(periodName('week', Date.UTC(2027, 0, 1))).toBe('2026-W53')
  expect(periodName('week', Date.UTC(2024, 11, 30))).toBe('2025-W01')
  expect(reportPeriod('week', '2026-W47')).toEqual({ by: 'week', name: '2026-W47', from: monday, to: monday + 7 * day })
  for (const wrong of ['2026-W54', '2025-W53', '2026-W00', '2026-47', ''])
    expect(reportPeriod('week', wrong)).toBeUndefined()
  for (let at = monday; at < monday + 800 * day; at += day) {
    expect(reportPeriod('day', periodName('day', at))!.from).toBe(at)
    const week = reportPeriod('week', periodName('week', at))!
    expect(week.from <= at && at < week.to).toBe(true)
  }
})

test('keys that are hot on several days recur; what was rolled back or helped nobody is a false alarm', () => {
  const { keys, recurring, totals, services } = report([
    episode({}),
    episode({ detectedAt: monday + 2 * day, cooledAt: monday + 2 * day + 5000 }),
    episode({ key: 'one-day' }),
    episode({ key: 'useless', handledAt: null }),
    episode({ key: 'back', end: 'rollback', services: ['cart'] }),
    episode({ key: 'shadow', isShadow: true }),
    episode({ key: 'before', detectedAt: monday - 10 * day, cooledAt: monday - 9 * day }),
  ])
  expect(keys.map(({ key, falseAlarms, days, hotMs }) => [key, falseAlarms, days, hotMs])).toEqual([
    ['k', 0, 2, 6000],
    ['back', 1, 1, 1000],
    ['one-day', 0, 1, 1000],
    ['useless', 1, 1, 1000],
  ])
  expect(recurring).toEqual([{ redisClusterId: 'main', key: 'k', days: ['2026-11-16', '2026-11-18'] }])
  expect(totals).toMatchObject({ keys: 4, episodes: 5, falseAlarms: 2 })
  expect(services.map(({ name, keys: count }) => [name, count])).toEqual([
    ['shop', 3],
    ['cart', 1],
  ])
})

test('only the part of an episode that lies in the period counts', () => {
  const over = episode({ detectedAt: monday - 3000, cooledAt: monday + 2000 })
  expect(report([over], 'day', '2026-11-16').keys[0]!.hotMs).toBe(2000)
  expect(report([episode({ cooledAt: null, end: null })], 'day', '2026-11-16').keys[0]!.hotMs).toBe(day)
})

test('a cell that a spreadsheet would run or that holds a comma is quoted', () => {
  const csv = reportCsv(report([episode({ key: '=cmd()', services: ['a,b'] })]))
  expect(csv.split('\r\n')[1]).toMatch(/^main,'=cmd\(\),"a,b",r,1,1,/)
})

test('events become episodes; a strategy that is given up for another is still the same one', () => {
  const event = (at: number, kind: never, text = '') => ({
    at,
    kind,
    redisClusterId: 'main',
    key: 'k',
    ruleId: 'r',
    text,
  })
  const found = episodesOf([
    event(1, 'cooled' as never),
    event(2, 'hot' as never, 'why'),
    event(3, 'delivered' as never, 'LocalCache sent to 2 sensors of cart, shop'),
    // As earlier versions wrote it.
    event(4, 'delivered' as never, 'LocalCache left for 1 sensor of web'),
    event(5, 'rollback' as never, 'it does not help; now Observe'),
    event(6, 'cooled' as never, 'over'),
    event(7, 'shadow' as never),
  ])
  expect(found).toMatchObject([
    { detectedAt: 7, isShadow: true, cooledAt: null, end: null },
    {
      detectedAt: 2,
      deliveredAt: 3,
      handledAt: null,
      cooledAt: 6,
      end: 'cooled',
      reason: 'why',
      services: ['cart', 'shop', 'web'],
      strategies: ['LocalCache', 'Observe'],
    },
  ])
})
