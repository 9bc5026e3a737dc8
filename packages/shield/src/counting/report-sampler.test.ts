import type { TableEntry } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { ReportSampler } from './report-sampler.ts'

const rule = parseRule({ id: 'r', prefix: 'k', threshold: 960 })
const entry = { redisClusterId: 'main', key: 'k1', ruleId: 'r' } as TableEntry

function sentOf(sampler: ReportSampler, known: TableEntry | undefined): { rows: number; sum: number } {
  let rows = 0
  let sum = 0
  for (let nth = 0; nth < 30_000; nth++) {
    if (!sampler.sample(known, 1, 0, 0)) continue
    rows++
    sum += sampler.count
  }
  return { rows, sum }
}

test('keys that are in the table are sent in fewer rows, with the same sums', () => {
  let state = 1
  const sampler = new ReportSampler(() => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  })
  sampler.setRules([rule])
  expect(sampler.isSampling).toBe(false)
  expect(sentOf(sampler, entry)).toEqual({ rows: 30_000, sum: 30_000 })
  sampler.setFactor(3)
  expect(sampler.isSampling).toBe(true)
  const cold = sentOf(sampler, undefined)
  const hot = sentOf(sampler, entry)
  expect(cold.rows / 10_000).toBeCloseTo(1, 1)
  // 1 + 1.5 · 2 = 4.
  expect(hot.rows / 7500).toBeCloseTo(1, 1)
  expect(cold.sum / 30_000).toBeCloseTo(1, 1)
  expect(hot.sum / 30_000).toBeCloseTo(1, 1)
  // From a rule that the table does not have.
  expect(sentOf(sampler, { ...entry, ruleId: 'gone' }).rows / 10_000).toBeCloseTo(1, 1)
})
