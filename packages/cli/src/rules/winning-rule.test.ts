import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { winningRule } from './winning-rule.ts'

const rule = (id: string, fields: object) => parseRule({ id, threshold: 100, strategy: 'LocalCache', ...fields })
const night = { key: 'coupon:1', priority: 100 }

test.each([
  ['a wider rule of a higher priority', night, { prefix: 'coupon:', priority: 1000, strategy: 'Observe' }, true],
  ['one of the same priority and a smaller id', night, { glob: '*', priority: 100 }, true],
  ['a prefix of the prefix', { prefix: 'coupon:' }, { prefix: 'cou', priority: 1 }, true],
  [
    'a rule in shadow mode, which takes the key and does nothing',
    night,
    { glob: '*', priority: 101, mode: 'shadow' },
    true,
  ],
  ['a lower priority', night, { glob: '*', priority: 99 }, false],
  ['a rule that is off', night, { glob: '*', priority: 1000, mode: 'off' }, false],
  ['another cluster', { ...night, redisClusterId: 'a' }, { glob: '*', priority: 1000, redisClusterId: 'b' }, false],
  ['one service alone', night, { glob: '*', priority: 1000, serviceId: 'shop' }, false],
  ['the key is excepted', night, { glob: '*', priority: 1000, except: [{ key: 'coupon:1' }] }, false],
  ['only some of its keys', { prefix: 'coupon:' }, { key: 'coupon:1', priority: 1000 }, false],
] as const)('%s', (_what, own, other, isTaken) => {
  const [ours, theirs] = [rule('night-fix', own), rule('any', other)]
  expect(winningRule(ours, [ours, theirs])?.id).toBe(isTaken ? 'any' : undefined)
})
