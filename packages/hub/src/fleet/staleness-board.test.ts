import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { StalenessBoard } from './staleness-board.ts'

test('the quantiles of a rule are those of its last observations', () => {
  const board = new StalenessBoard()
  for (let value = 1; value <= 100; value++) board.add('a', value, 5)
  board.add('b', 7, 6)
  const rule = parseRule({ id: 'a', key: 'k', threshold: 1, maxStalenessMs: 20 })
  expect(board.views((id) => (id === 'a' ? rule : undefined))).toEqual([
    { ruleId: 'a', observations: 100, p50Ms: 50, p99Ms: 99, maxMs: 100, maxStalenessMs: 20, lastAt: 5 },
    { ruleId: 'b', observations: 1, p50Ms: 7, p99Ms: 7, maxMs: 7, maxStalenessMs: null, lastAt: 6 },
  ])
  for (let value = 0; value < 2000; value++) board.add('a', 0, 5)
  expect(board.views(() => undefined)[0]).toMatchObject({ observations: 2100, maxMs: 0 })
})

test('a rule that nobody observes any more is forgotten', () => {
  const board = new StalenessBoard()
  board.add('a', 1, 0)
  board.add('b', 1, 3_000_000)
  board.forget(3_700_000)
  expect(board.views(() => undefined).map(({ ruleId }) => ruleId)).toEqual(['b'])
})
