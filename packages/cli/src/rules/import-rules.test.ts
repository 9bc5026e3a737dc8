import { compilePattern } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { importRules } from './import-rules.ts'

const jd = [
  { key: '*', prefix: false, interval: 5, threshold: 100, duration: 60, desc: 'the rest' },
  { key: 'sku_', prefix: true, interval: 2, threshold: 500, duration: 30 },
  { key: 'sku_1', prefix: false, interval: 1, threshold: 50, duration: 10 },
]

test("JD hotkey's rules: a key before a prefix before the rest, windows and durations in our units", () => {
  const { rules, remarks } = importRules(jd, { from: 'jd-hotkey', keys: [] })
  expect(remarks).toEqual([])
  expect(rules.map(({ id, priority, windowMs, minHoldMs }) => [id, priority, windowMs, minHoldMs])).toEqual([
    ['jd-any', 0, 5000, 60_000],
    ['jd-sku_', 10, 2000, 30_000],
    ['jd-sku_1', 20, 1000, 10_000],
  ])
  expect(rules[1]!.levels[0]).toMatchObject({ enter: 500, strategies: [{ strategy: 'LocalCache', expireTime: 30 }] })
})

const sentinel = {
  resource: 'getProduct',
  grade: 1,
  paramIdx: 0,
  count: 5,
  durationInSec: 2,
  controlBehavior: 2,
  clusterMode: true,
  paramFlowItemList: [{ object: '7', classType: 'int', count: 10 }],
}

test("Sentinel's hot parameters become limits on the keys made of them, single values first", () => {
  const options = { from: 'sentinel', keys: ['getProduct=product_{param}'], serviceId: 'shop' }
  const { rules, remarks } = importRules([sentinel], options)
  expect(remarks).toEqual([])
  const limit = { strategy: 'RateLimit', limit: 5, windowMs: 2000, onLimit: 'wait', scope: 'shared' }
  expect(rules[0]).toMatchObject({ serviceId: 'shop', pattern: { prefix: 'product_' }, priority: 10, windowMs: 2000 })
  expect(rules[0]!.levels[0]!.strategies).toMatchObject([limit])
  expect(rules[1]).toMatchObject({ pattern: { keys: ['product_7'] }, priority: 20, levels: [{ enter: 10 }] })
})

test('a burst is what the bucket holds beyond the count, for single values too', () => {
  const options = { from: 'sentinel', keys: ['getProduct=product_{param}'] }
  const { rules, remarks } = importRules([{ ...sentinel, controlBehavior: 0, burstCount: 3 }], options)
  expect(remarks).toEqual([])
  expect(rules.map(({ levels }) => levels[0]!.strategies[0])).toMatchObject([
    { strategy: 'RateLimit', algorithm: 'tokenBucket', limit: 5, burst: 8, onLimit: 'reject' },
    { strategy: 'RateLimit', algorithm: 'tokenBucket', limit: 10, burst: 13, onLimit: 'reject' },
  ])
})

test('a parameter in the middle of a key is a glob, and what stands around it is meant as it is', () => {
  const options = { from: 'sentinel', keys: ['getProduct=a*[{param}]:b'] }
  const [rule] = importRules([{ ...sentinel, paramFlowItemList: [] }], options).rules
  const matches = compilePattern(rule!.pattern)
  expect(matches('a*[12]:b')).toBe(true)
  expect(matches('aX[12]:b')).toBe(false)
})

test('what has no counterpart is told, and what cannot be meant is refused', () => {
  const keys = ['getProduct=product_{param}']
  const uneven = { ...sentinel, burstCount: 3, clusterMode: false }
  const { rules, remarks } = importRules([uneven, { ...sentinel, grade: 0 }], { from: 'sentinel', keys })
  expect(rules).toHaveLength(2)
  expect(remarks.join('\n')).toMatch(/all processes together\n.*burstCount 3.*left out.*\n.*left out.*threads/)
  expect(() => importRules([sentinel], { from: 'sentinel', keys: [] })).toThrow("--keys 'getProduct=prefix_{param}'")
  expect(() => importRules([sentinel], { from: 'sentinel', keys: ['getProduct=all'] })).toThrow('{param} once')
  expect(() => importRules(jd, { from: 'jdhotkey', keys: [] })).toThrow('did you mean jd-hotkey')
  expect(() => importRules([{ key: 'a', interval: 1, threshold: 0 }], { from: 'jd-hotkey', keys: [] })).toThrow(
    'rule 1, threshold',
  )
  expect(() => importRules({ key: 'a' }, { from: 'jd-hotkey', keys: [] })).toThrow('not rules of jd-hotkey')
})

test('a limit of 0, a second parameter and a rule that stands twice are told, and cost no other rule', () => {
  const options = { from: 'sentinel', keys: ['getProduct=product_{param}'] }
  const items = [
    { object: '7', count: 0 },
    { object: '8', count: 3 },
  ]
  const given = [
    { ...sentinel, paramFlowItemList: items, maxQueueingTimeMs: 200 },
    { ...sentinel, paramIdx: 1 },
    { ...sentinel, count: 0, paramFlowItemList: [] },
  ]
  const { rules, remarks } = importRules(given, options)
  expect(rules.map(({ id }) => id)).toEqual(['sentinel-getProduct', 'sentinel-getProduct-8'])
  expect(remarks).toEqual([
    expect.stringContaining('maxQueueingTimeMs 200'),
    'getProduct, value 7: left out, since a limit of 0 blocks every access, which no rule does',
    'getProduct: left out for parameter 1, since its keys are made from parameter 0',
    'getProduct: left out, since a limit of 0 blocks every access, which no rule does',
  ])
  expect(importRules([jd[1], jd[1]], { from: 'jd-hotkey', keys: [] }).remarks).toEqual([
    expect.stringMatching(/^sku_: appears twice/),
  ])
})

test('rules of one name get ids of their own, whatever characters the names have', () => {
  const odd = ['a b', 'a/b', 'é'.repeat(200)].map((key) => ({ key, interval: 1, threshold: 5 }))
  const { rules } = importRules(odd, { from: 'jd-hotkey', keys: [] })
  expect(rules.map(({ id }) => id)).toEqual(['jd-a-b', 'jd-a-b-2', 'jd--'])
})
