import { expect, test } from 'vitest'
import { actionEffectText, inForceText, type KeyNow, lossText } from './action-effect.ts'

const cached = {
  ratePerSecond: 40_000,
  strategy: { strategy: 'LocalCache' },
  ruleId: 'product',
  handling: 'handled',
  effect: { redisPerSecondNow: 16 },
} as KeyNow
const plan = { kind: 'limit', limit: 216, onLimit: 'reject', copies: 4 } as const

test('a limit on a cached key says what it takes away', () => {
  expect(inForceText(cached)).toBe('Now LocalCache of rule product: of 40 k/s, Redis sees 16/s.')
  expect(actionEffectText(plan, cached, '03:10:00')).toBe(
    'Then RateLimit: Redis sees up to 216/s, 39.8 k/s would be refused, until 03:10:00.',
  )
  expect(lossText(plan, cached)).toBe('This replaces LocalCache: Redis would see 200/s more than now.')
  expect(lossText({ ...plan, kind: 'ignore' }, cached)).toContain('40 k/s more')
  expect(lossText({ ...plan, kind: 'copy' }, cached)).toContain('40 k/s more')
  expect(lossText({ ...plan, kind: 'cache' }, cached)).toBeUndefined()
  expect(lossText({ ...plan, kind: 'prewarm' }, cached)).toBeUndefined()
})

test('where nothing is done there is nothing to lose', () => {
  const cold = { ...cached, strategy: null, handling: null, effect: null, ruleId: null } as KeyNow
  expect(inForceText(cold)).toBe('Now nothing is done: Redis sees 40 k/s.')
  expect(lossText(plan, cold)).toBeUndefined()
  const only = { ...cached, handling: 'observed' } as KeyNow
  expect(inForceText(only)).toBe('Now nothing is done: Redis sees 40 k/s.')
  expect(actionEffectText({ ...plan, limit: 50_000 }, cold, 'x')).toContain('nothing would be held back')
  expect(actionEffectText({ ...plan, onLimit: 'stale' }, cold, 'x')).toContain('get the last known value')
})
