import { defaultLocalCache } from '@firebreak/core'
import { testRule } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { FastPath } from './fast-path.ts'

function fastPath(...rules: Parameters<FastPath['setRules']>[0][number][]): FastPath {
  const path = new FastPath('shop', 'main')
  path.setRules(rules)
  return path
}

test('a key crosses when the accesses in its window reach the threshold, without counting older ones', () => {
  const path = fastPath(testRule(1000))
  for (let at = 100; at <= 900; at += 100) expect(path.observe('k', 100, 0, at)).toBeUndefined()
  expect(path.observe('k', 100, 0, 1000)).toEqual({ ruleId: 'test', heat: 1000, strategy: defaultLocalCache })
  const slow = fastPath(testRule(1000))
  for (let at = 100; at <= 5000; at += 100) expect(slow.observe('k', 99, 0, at)).toBeUndefined()
})

test('the matching rule with the highest priority decides, even when it is off duty or denies', () => {
  const prefix = (text: string) => ({ kind: 'prefix', prefix: text }) as const
  const shadow = testRule(10, { id: 'a', priority: 5, pattern: prefix('p:'), mode: 'shadow' })
  const except = testRule(10, { id: 'b', except: [prefix('never:')] })
  const path = fastPath(shadow, except)
  expect(path.observe('p:1', 50, 0, 100)).toBeUndefined()
  expect(path.observe('never:1', 50, 0, 100)).toBeUndefined()
  expect(path.observe('other', 50, 0, 100)?.ruleId).toBe('b')
})

test('rules of other services and clusters, and rules that are off, do not count', () => {
  const path = fastPath(
    testRule(10, { serviceId: 'other' }),
    testRule(10, { redisClusterId: 'other' }),
    testRule(10, { mode: 'off' }),
  )
  expect(path.observe('k', 1000, 0, 100)).toBeUndefined()
  expect(path.burstCount).toBe(Number.POSITIVE_INFINITY)
})

test('a level measures its own metric, and the highest one that is reached counts', () => {
  const level = (measure: 'reads' | 'writes', enter: number, expireTime: number) => ({
    measure,
    enter,
    exit: 1,
    strategies: [{ ...defaultLocalCache, expireTime }],
  })
  const path = fastPath(testRule(10, { levels: [level('reads', 50, 1), level('reads', 100, 2)] }))
  expect(path.observe('a', 60, 20, 100)).toBeUndefined()
  expect(path.observe('b', 60, 0, 100)?.strategy.expireTime).toBe(1)
  expect(path.observe('c', 150, 10, 100)?.strategy.expireTime).toBe(2)
})

test('a level without a LocalCache is left to the hub', () => {
  const observe = { measure: 'accesses', enter: 10, exit: 5, strategies: [{ strategy: 'Observe' }] } as const
  expect(fastPath(testRule(10, { levels: [observe] })).observe('k', 100, 0, 100)).toBeUndefined()
})

test('candidates are bounded and forgotten after a window', () => {
  const path = new FastPath('shop', 'main', 2)
  path.setRules([testRule(100)])
  for (const key of ['a', 'b', 'c']) path.observe(key, 60, 0, 100)
  expect(path.observe('c', 60, 0, 200)).toBeUndefined()
  expect(path.observe('a', 60, 0, 200)?.heat).toBe(120)
  path.sweep(5000)
  path.observe('c', 60, 0, 5000)
  expect(path.observe('c', 60, 0, 5100)?.heat).toBe(120)
})

test('an interval ends at the access that makes a slowly rising key cross, and when any key grows fast', () => {
  const path = fastPath(testRule(1000))
  expect(path.burstCount).toBe(125)
  for (let at = 100; at <= 700; at += 100) path.observe('creeping', 105, 0, at)
  path.sweep(700)
  // 265 are missing, more than two intervals bring.
  expect([path.burstCount, path.leftCount]).toEqual([125, Number.POSITIVE_INFINITY])
  for (const at of [800, 900]) path.observe('creeping', 105, 0, at)
  path.sweep(900)
  // 945 so far.
  expect(path.burstCount).toBe(55)
  expect([54, 55, 56].map((count) => path.isBurst('creeping', count - 1, count))).toEqual([false, true, false])
  expect(path.isBurst('other', 54, 55)).toBe(false)
  expect(path.isBurst('other', 100, 130)).toBe(true)
  expect(path.observe('creeping', 55, 0, 950)?.heat).toBe(1000)
  path.sweep(950)
  // It has crossed its threshold: there is nothing to wait for.
  expect(path.burstCount).toBe(125)
})

test('a key that is counted by its bytes ends the interval too, found by its hash', () => {
  const path = fastPath(testRule(1000))
  for (let at = 100; at <= 900; at += 100) path.observe('creeping', 105, 0, at, 4711)
  path.sweep(900)
  expect(path.isBurst(4711, 40, 54)).toBe(false)
  expect(path.isBurst(4711, 50, 60)).toBe(true)
  expect(path.isBurst(4712, 50, 60)).toBe(false)
})
