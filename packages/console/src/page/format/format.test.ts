import { expect, test } from 'vitest'
import { ago, bytes, duration, milliseconds, percent, rate, si } from './format.ts'

test('numbers have the prefix that reads best, and never round up to a thousand', () => {
  expect([0, 0.44, 9.96, 12.4, 980, 999.96, 12_400, 3_000_000].map((value) => si(value))).toEqual([
    '0',
    '0.4',
    '10',
    '12',
    '980',
    '1 k',
    '12.4 k',
    '3 M',
  ])
  expect([si(-1500), bytes(512), bytes(8200)]).toEqual(['−1.5 k', '512 B', '8.2 kB'])
  expect([0.5, 9.96, 4120, 12_400].map(rate)).toEqual(['0.5/s', '10/s', '4,120/s', '12.4 k/s'])
  expect(percent(0.1234)).toBe('12.3 %')
})

test('a duration has a unit, and an hour is an hour', () => {
  const hour = 3_600_000
  expect([0, 8400, 99_000, 600_000, hour, 1.5 * hour, 8 * hour, 24 * hour, 72 * hour].map(duration)).toEqual([
    '0 s',
    '8.4 s',
    '99 s',
    '10 min',
    '1 h',
    '1.5 h',
    '8 h',
    '24 h',
    '3 d',
  ])
  expect([milliseconds(0.34), milliseconds(950.4), milliseconds(1100)]).toEqual(['0.3 ms', '950.4 ms', '1.1 s'])
  expect([ago(1000, 4400), ago(5000, 1000)]).toEqual(['3 s', '0 s'])
})
