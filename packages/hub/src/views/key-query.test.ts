import type { KeyView } from '@firebreak/core'
import { expect, test } from 'vitest'
import { compareKeys, groupKeys, isWanted } from './key-query.ts'

function view(key: string, parts: Partial<KeyView> = {}): KeyView {
  return {
    redisClusterId: 'main',
    key,
    state: 'warming',
    ratePerSecond: 10,
    writesPerSecond: 0,
    bytesPerSecond: 0,
    share: 0.1,
    sparkline: [],
    errorPerSecond: 0,
    hosts: 1,
    slot: 0,
    ruleId: null,
    strategy: null,
    reason: '',
    since: null,
    effect: null,
    ...parts,
  }
}

test('keys are found by a part of what people read, their cluster, their group and their state', () => {
  const key = view('User%3A1', { redisClusterId: 'shop' })
  expect(isWanted(key, { match: 'user:' })).toBe(true)
  expect(isWanted(key, { match: 'user%3A' })).toBe(false)
  expect(isWanted(key, { cluster: 'main' })).toBe(false)
  expect(isWanted(key, { cluster: 'shop', group: 'User' })).toBe(true)
  expect(isWanted(key, { state: 'hot' })).toBe(false)
  const hot = view('k', {
    services: ['web', 'shop'],
    ruleId: 'r',
    handling: 'unhandled',
    strategy: { strategy: 'RateLimit' } as never,
  })
  expect(isWanted(hot, { service: 'shop', rule: 'r', handling: 'unhandled', strategy: 'RateLimit' })).toBe(true)
  for (const other of [{ service: 'sho' }, { rule: 'q' }, { handling: 'handled' }, { strategy: 'Combine' }] as const)
    expect(isWanted(hot, other)).toBe(false)
  expect(isWanted(view('a', { state: 'cold', ratePerSecond: 0 }), {})).toBe(false)
  expect(isWanted(view('a', { state: 'cold', ratePerSecond: 0 }), { state: 'cold' })).toBe(true)
})

test('each order puts the largest first, and equal keys by name', () => {
  const steady = view('steady', { sparkline: Array(59).fill(20), ratePerSecond: 20 })
  const burst = view('burst', { sparkline: [...Array(58).fill(0), 900], ratePerSecond: 900, writesPerSecond: 5 })
  const hot = view('z', { state: 'hot', ratePerSecond: 1, since: 7 })
  const names = (order: Parameters<typeof compareKeys>[0]) =>
    [steady, burst, hot].sort(compareKeys(order)).map(({ key }) => key)
  expect(names('heat')).toEqual(['z', 'burst', 'steady'])
  expect(names('rate')).toEqual(['burst', 'steady', 'z'])
  expect(names('rate60')).toEqual(['steady', 'burst', 'z'])
  expect(names('rate10')).toEqual(['burst', 'steady', 'z'])
  expect(names('writes')).toEqual(['burst', 'steady', 'z'])
  expect(names('reads')).toEqual(['burst', 'steady', 'z'])
  expect(names('share')).toEqual(['burst', 'steady', 'z'])
  expect(names('since')).toEqual(['z', 'burst', 'steady'])
  expect(names('name')).toEqual(['burst', 'steady', 'z'])
})

test('groups sum their keys, the busiest first', () => {
  const keys = [view('product%3A1', { state: 'hot' }), view('product%3A2'), view('cart_1', { ratePerSecond: 5 })]
  expect(groupKeys(keys)).toEqual([
    { group: 'product', keys: 2, hot: 1, ratePerSecond: 20, writesPerSecond: 0, share: 0.2 },
    { group: 'cart', keys: 1, hot: 0, ratePerSecond: 5, writesPerSecond: 0, share: 0.1 },
  ])
})
