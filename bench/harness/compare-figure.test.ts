import { expect, test } from 'vitest'
import { compareFigure, isLowerBetter } from './compare-figure.ts'

const around = (value: number): number[] => Array.from({ length: 15 }, (_, index) => value * (1 + (index - 7) / 700))

test('a figure is worse only when its whole interval lies beyond 3 %', () => {
  expect(compareFigure(around(94), around(100), false)).toMatchObject({ isWorse: true })
  expect(compareFigure(around(98), around(100), false)).toMatchObject({ isWorse: false })
  expect(compareFigure(around(106), around(100), false)).toMatchObject({ isWorse: false })
})

test('a time that grows is worse, and a speed that grows is not', () => {
  expect(compareFigure(around(106), around(100), true)).toMatchObject({ isWorse: true })
  expect(isLowerBetter({ id: 'p1-cpu-vs-twemproxy', ratio: 1, of: 'a', to: 'b' })).toBe(true)
  expect(isLowerBetter({ id: 'bare-get-per-cpu-second', value: 1, unit: 'GET/s' })).toBe(false)
  expect(isLowerBetter({ id: 'growth-pause-vs-map', ratio: 1, of: 'a', to: 'b' })).toBe(false)
  expect(isLowerBetter({ id: 'cold-vs-bare', ratio: 1, of: 'a', to: 'b' })).toBe(false)
  expect(isLowerBetter({ id: 'binlog-ms', value: 1, unit: 'ms' })).toBe(true)
})

test('a difference within the noise on both sides is not a failure', () => {
  const noisy = Array.from({ length: 15 }, (_, index) => (index % 2 === 0 ? 70 : 120))
  expect(compareFigure(noisy, around(100), false)).toMatchObject({ isWorse: false })
})
