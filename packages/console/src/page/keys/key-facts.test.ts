import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { actionRule, actionText, handlingText, heatGauge, isRange, strategyText } from './key-facts.ts'

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
  expect(heatGauge(50, rule)).toMatchObject({ threshold: 100, isOver: false })
  expect(heatGauge(400, rule)).toMatchObject({ threshold: 100, isOver: true })
  expect(heatGauge(1500, rule)).toMatchObject({ threshold: 1000, isOver: true, rateAt: 0.8 })
  expect(heatGauge(5, undefined)).toBeUndefined()
  expect(heatGauge(5, parseRule({ id: 's', prefix: 'k', share: 0.5 }))).toBeUndefined()
})

test('a strategy and what it brings are told in words', () => {
  expect(strategyText(null)).toContain('not hot')
  expect(strategyText({ strategy: 'Observe' })).toContain('nothing else is done')
  const limit = { strategy: 'RateLimit', algorithm: 'gcra', limit: 70, windowMs: 1000, onLimit: 'stale' } as const
  expect(strategyText({ ...limit, scope: 'process' })).toContain('70 accesses in 1 s')
  expect(handlingText({ handling: 'unhandled', effect: null })).toContain('no process')
  expect(handlingText({ handling: 'observed', effect: null })).toContain('Only observed')
})

test('the rule of an action is found by its key and cluster alone', () => {
  const action = { id: 'key:1', redisClusterId: 'main', key: 'a', threshold: 1, priority: 1_000_000 }
  const rules = [rule, parseRule({ ...action, id: 'own' }), parseRule(action)]
  expect(actionRule(rules, 'main', 'a')?.id).toBe('key:1')
  expect(actionRule(rules, 'main', 'b')).toBeUndefined()
  expect(actionRule(rules, 'other', 'a')).toBeUndefined()
  expect(actionText(rules[2]!)).toBe('Cached')
  expect([isRange('a1..9'), isRange('a..b')]).toEqual([true, false])
})
