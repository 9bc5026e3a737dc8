import { encodeBinaryReport, parseBinaryReport, parseTextReport } from '@firebreak/core'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { spreadReport } from './spread-report.ts'

test('a minute is spread over sixty seconds, and nothing is lost or made', () => {
  const text = '# 1000,1000,shop,h1,i1,interval=60000\n# main\na:6000:60:600,b:7\n'
  const report = parseTextReport(text, 2)
  expect(report.intervalMs).toBe(60_000)
  const parts = spreadReport(encodeBinaryReport(report), 0, report.intervalMs!)!
  expect(parts).toHaveLength(60)
  expect(parts.map(({ agoMs }) => agoMs)).toEqual(Array.from({ length: 60 }, (_, index) => 59_500 - index * 1000))
  const entries = parts.flatMap(({ bytes }) => parseBinaryReport(bytes).sections[0]?.entries ?? [])
  const sum = (key: string) => entries.filter((entry) => entry.key === key).reduce((all, { count }) => all + count, 0)
  expect([sum('a'), sum('b')]).toEqual([6000, 7])
  expect(entries.filter(({ key }) => key === 'a').every(({ count, writes }) => count === 100 && writes === 1)).toBe(
    true,
  )
  expect(spreadReport(encodeBinaryReport(report), 0, 0)).toBe(undefined)
})

test('full-width signs of the first lines are taken, and an interval that is none is not', () => {
  const plain = parseTextReport('# 1000,1001,shop,h1\n# main\na:1\n')
  expect(parseTextReport('＃ 1000，1001，shop，h1\n＃ main\na:1\n')).toEqual(plain)
  expect(plain.intervalMs).toBe(undefined)
  for (const wrong of ['x', '', '-1', '1e3', '9999999', '99999999999'])
    expect(() => parseTextReport(`# 1000,1001,shop,h1,interval=${wrong}\n`)).toThrow(
      `interval is "${wrong}"; it must be`,
    )
})

test('an interval never passes for the id of a process that left its id out', () => {
  expect(() => parseTextReport('# 1000,1001,shop,h1,interval=60000\n# main\na:1\n', 2)).toThrow('has 4 fields')
  const report = parseTextReport('# 1000,1001,shop,h1,a=b,interval=60000\n# main\na:1\n', 2)
  expect(report).toMatchObject({ instanceId: 'a=b', intervalMs: 60_000 })
})

test('a rule of a second sees the second of a minute, and the reporter stays in the list', async () => {
  const rule = { id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000 }
  const hub = await TestCore.open([rule])
  const report = (key: string, count: number, interval: string) => {
    const now = Math.floor(hub.clock.now())
    hub.core.collector.collectText(`# ${now},${now},shop,h1${interval}\n# main\n${key}:${count}\n`, 1)
    hub.clock.advance(500)
  }
  report('hot-calm', 6000, ',interval=60000')
  expect(hub.entry('hot-calm')).toBeUndefined()
  report('hot-moment', 6000, '')
  expect(hub.entry('hot-moment')).toBeDefined()
  report('hot-minute', 60_000, ',interval=60000')
  expect(hub.entry('hot-minute')).toBeDefined()
  hub.clock.advance(70_000)
  expect([...hub.core.fleet.hosts.all()].map(({ hostId }) => hostId)).toEqual(['h1'])
  hub.clock.advance(120_000)
  expect([...hub.core.fleet.hosts.all()]).toEqual([])
})
