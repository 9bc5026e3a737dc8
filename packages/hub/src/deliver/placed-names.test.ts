import type { TableEntry } from '@firebreak/core'
import { expect, test } from 'vitest'
import { PlacedNames } from './placed-names.ts'

const entry: TableEntry = {
  redisClusterId: 'c',
  key: 'k{1}',
  strategy: { strategy: 'RedundantKeys', copies: ['k{1}_1', 'k{1}_2'], ttlJitterMs: 0 },
  ruleId: 'r',
  reason: '',
  since: 0,
  until: 1,
}

const namesIn = (names: PlacedNames, of: TableEntry = entry) => {
  const { strategy } = names.in(of)
  return strategy.strategy === 'RedundantKeys' ? strategy.placed : undefined
}

test('an entry gets the names that a process tells, as far as they can be its copies', () => {
  const names = new PlacedNames()
  expect(namesIn(names)).toBe(undefined)
  expect(names.tell(entry, ['k(1)_1~3', 'k(1)_2', 'password', 'k(1)_3', 'k(1)_1~x'], true, 0)).toBe(true)
  expect(namesIn(names)).toEqual(['k(1)_1~3', 'k(1)_2'])
  expect(names.tell(entry, ['k(1)_1~3', 'k(1)_2'], true, 1)).toBe(false)
  names.forget('c', 'k{1}')
  expect(namesIn(names)).toBe(undefined)
})

test('the word of who writes them counts more than that of others, while it is new', () => {
  const names = new PlacedNames()
  names.tell(entry, ['k(1)_1'], false, 0)
  names.tell(entry, ['k(1)_2'], true, 1)
  expect(names.tell(entry, ['k(1)_1'], false, 9000)).toBe(false)
  expect(namesIn(names)).toEqual(['k(1)_2'])
  expect(names.tell(entry, ['k(1)_1'], false, 20_000)).toBe(true)
  expect(namesIn(names)).toEqual(['k(1)_1'])
})

test('names of another template are not kept for a new strategy', () => {
  const names = new PlacedNames()
  names.tell(entry, ['k(1)_1'], true, 0)
  const other = { ...entry, strategy: { strategy: 'RedundantKeys', copies: ['k{1}#1'], ttlJitterMs: 0 } } as const
  expect(namesIn(names, other)).toBe(undefined)
  const each = {
    strategy: 'RedundantKeys',
    copies: [],
    copiesPerNode: 2,
    template: '{key}_{n}',
    ttlJitterMs: 0,
  } as const
  expect(namesIn(names, { ...entry, strategy: each })).toEqual(['k(1)_1'])
})
