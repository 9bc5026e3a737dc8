import { parseRule } from '@firebreak/core/rules'
import { expect, test, vi } from 'vitest'

vi.stubGlobal('localStorage', { getItem: () => null, setItem() {} })
const { actionRule, actionText, handlingText, isRange, strategyText, thresholdText, thresholdsOf } = await import(
  './key-facts.ts'
)

const rule = parseRule({
  id: 'r',
  prefix: 'k',
  windowMs: 2000,
  levels: [
    { threshold: 200, strategy: 'Observe' },
    { threshold: 2000, strategy: 'LocalCache' },
  ],
})

test('a rate is compared with the level it has reached, or the first, in accesses a second', () => {
  expect(thresholdText(50, rule)).toBe('50/s, under the threshold of 100/s')
  expect(thresholdText(400, rule)).toBe('400/s, over the threshold of 100/s')
  expect(thresholdText(1500, rule)).toBe('1,500/s, over the threshold of 1,000/s')
  expect(thresholdText(5, undefined)).toBe('5/s')
  expect(thresholdsOf(rule).map(({ text }) => text)).toEqual(['100/s Observe', '1,000/s LocalCache'])
  expect(thresholdsOf(parseRule({ id: 's', prefix: 'k', share: 0.5 }))).toEqual([])
})

test('a strategy and what it brings are told in words', () => {
  expect(strategyText(null)).toContain('not hot')
  expect(strategyText({ strategy: 'Observe' })).toContain('nothing else is done')
  const limit = { strategy: 'RateLimit', algorithm: 'gcra', limit: 70, windowMs: 1000, onLimit: 'stale' } as const
  expect(strategyText({ ...limit, scope: 'process' })).toContain('70 accesses in 1 s')
  expect(handlingText({ handling: 'unhandled', effect: null, strategy: null, ratePerSecond: 1 })).toContain(
    'no process',
  )
  expect(handlingText({ handling: 'observed', effect: null, strategy: null, ratePerSecond: 1 })).toContain(
    'Only observed',
  )
  const byItself = { effect: null, strategy: null, ratePerSecond: 1 }
  expect(handlingText({ ...byItself, handling: 'observed', carrier: 'reports' })).toContain('send reports')
  expect(handlingText({ ...byItself, handling: 'handled', carrier: 'table' })).toContain('programs that read /v1/table')
})

test('the rule of an action is found by its key and cluster alone', () => {
  const action = { id: 'key:1', redisClusterId: 'main', key: 'a', threshold: 1, priority: 1_000_000 }
  const rules = [rule, parseRule({ ...action, id: 'own' }), parseRule(action)]
  expect(actionRule(rules, 'main', 'a')?.id).toBe('key:1')
  expect(actionRule(rules, 'main', 'b')).toBeUndefined()
  expect(actionRule(rules, 'other', 'a')).toBeUndefined()
  expect(actionText(rules[2]!)).toBe('Cached')
  expect(actionText(parseRule({ ...action, strategy: { strategy: 'RedundantKeys', copyCount: 3 } }))).toContain('3')
  expect([isRange('a1..9'), isRange('a..b')]).toEqual([true, false])
})
