import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { formatBytes, formatCount, formatDuration, formatShare } from './format.ts'
import { ProgressBar } from './progress-bar.ts'
import { renderCsv, renderNdjson } from './records.ts'
import { renderTable } from './table.ts'

test('quantities are short and carry their unit', () => {
  expect([0, 999, 1234567, 0.01234].map(formatCount)).toEqual(['0', '999', '1,234,567', '0.0123'])
  expect([0, 1023, 1536, 5 * 1024 ** 3].map(formatBytes)).toEqual(['0 B', '1023 B', '1.5 KiB', '5.0 GiB'])
  expect([12, 5000, 200_000, 7_500_000, 2e8].map(formatDuration)).toEqual(['12ms', '5s', '3m 20s', '2h 5m', '2d 7h'])
  expect([0.0123, 0.5].map(formatShare)).toEqual(['1.2 %', '50 %'])
})

test('a table aligns, leaves empty columns out and cuts only what may be cut', () => {
  const columns = [
    { title: 'key', text: (row: { k: string; n: number }) => row.k, isFlexible: true },
    { title: 'n', text: (row: { k: string; n: number }) => String(row.n), align: 'right' as const },
    { title: 'nothing', text: () => undefined },
  ]
  const rows = [
    { k: 'a', n: 1 },
    { k: 'x'.repeat(40), n: 1000 },
  ]
  expect(renderTable(columns, rows)).toBe(
    `key${' '.repeat(37)}     n\na${' '.repeat(39)}     1\n${'x'.repeat(40)}  1000\n`,
  )
  const narrow = renderTable(columns, rows, 30).split('\n')
  expect(narrow[2]).toBe(`${'x'.repeat(23)}…  1000`)
})

test('a long key never widens a table: it is cut to the terminal, and moves no other row where there is none', () => {
  const columns = [
    { title: 'key', text: (row: { k: string; n: number }) => row.k, isFlexible: true },
    { title: 'n', text: (row: { k: string; n: number }) => String(row.n), align: 'right' as const },
  ]
  const rows = [
    { k: 'a', n: 1 },
    { k: 'x'.repeat(400), n: 1000 },
  ]
  for (const width of [40, 80, 200]) {
    for (const line of renderTable(columns, rows, width).split('\n')) expect(line.length).toBeLessThanOrEqual(width)
  }
  const [, short, long] = renderTable(columns, rows).split('\n')
  expect(short).toBe(`a${' '.repeat(64)}1`)
  expect(long).toBe(`${'x'.repeat(400)}  1000`)
})

test('no other text widens a table either, numbers and times stay whole, and wide signs count for two', () => {
  const columns = [
    { title: 'service', text: (row: { s: string; at: string }) => row.s },
    { title: 'rate', text: () => '1234567', align: 'right' as const },
    { title: 'at', text: (row: { s: string; at: string }) => row.at },
  ]
  const at = '2026-11-18T20:36:47.941Z'
  const rows = [
    { s: 'shop', at },
    { s: 'a-service-with-a-long-name-'.repeat(6), at },
  ]
  for (const line of renderTable(columns, rows, 80).split('\n').slice(1, 3)) {
    expect(line.length).toBeLessThanOrEqual(80)
    expect(line).toMatch(/ 1234567 {2}2026-11-18T20:36:47\.941Z$/)
  }
  expect(renderTable(columns, rows).split('\n')[1]!.indexOf('1234567')).toBe(62)
  const [, short, long] = renderTable(columns, [
    { s: 'ab', at },
    { s: '热点', at },
  ]).split('\n')
  expect([short!.indexOf('1234567'), long!.indexOf('1234567')]).toEqual([9, 7])
})

test('CSV quotes what must be quoted and disarms formulas; NDJSON is one object a line', () => {
  expect(
    renderCsv([
      { key: 'a,"b"\n', n: 1 },
      { key: '=1+1', extra: true },
    ]),
  ).toBe('key,n,extra\r\n"a,""b""\n",1,\r\n\'=1+1,,true\r\n')
  expect(renderNdjson([{ a: 1 }, { b: '\n' }])).toBe('{"a":1}\n{"b":"\\n"}\n')
})

test('the progress bar tells share, rate and time left, and goes away', () => {
  const clock = new FakeClock()
  const written: string[] = []
  const out = { write: (text: string) => written.push(text) > 0, isTTY: true, columns: 100 } as never
  const bar = new ProgressBar(out, { clock })
  clock.advance(2000)
  bar.update({ unit: 'keys', done: 50_000, total: 200_000 })
  bar.update({ unit: 'keys', done: 50_001, total: 200_000 })
  expect(written).toHaveLength(1)
  expect(written[0]).toMatch(/\[#####\.{15}\] {2}25 % {2}50,000 of 200,000 keys {2}25,000 keys\/s {2}6s left/)
  expect(bar.render({ unit: 'commands', done: 10, total: 0 })).toMatch(/^10 commands {2}5 commands\/s {2}2s/)
  bar.clear()
  expect(written.slice(-2).join('')).toMatch(/^\r +\r$/)
  const silent = new ProgressBar({ write: () => expect.unreachable() } as never, { clock })
  silent.update({ unit: 'keys', done: 1, total: 2 })
})
