import { parseRule, type Rule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import {
  draftOf,
  draftOfJson,
  newDraft,
  patternKinds,
  patternOf,
  patternValue,
  readyToSave,
  strategyNames,
  withLevel,
  withLimit,
  withStrategy,
  withThreshold,
} from './rule-draft.ts'

const choices = patternKinds.flatMap((kind) => strategyNames.map((strategy) => [kind, strategy] as const))

const deep = parseRule({
  id: 'deep',
  glob: 'product_*',
  except: ['product_x*'],
  windowMs: 2000,
  maxStalenessMs: 50,
  levels: [
    { threshold: 100, strategy: 'Observe' },
    { threshold: 1000, exit: 500, strategies: ['LocalCache', 'RedundantKeys'] },
    { threshold: 9000, strategy: { strategy: 'RateLimit', limit: 70, onLimit: 'stale', algorithm: 'gcra' } },
  ],
})

test.each(choices)('a rule by %s that does %s can be saved, and comes back unchanged', (kind, strategy) => {
  const whole = newDraft().rule!
  const rule = {
    ...withLevel(whole, 0, (level) => withStrategy(level, strategy)),
    id: 'new',
    pattern: patternOf(kind, 'product'),
  }
  const ready = readyToSave(draftOf(rule, true), []) as { id: string; body: object }
  const saved = parseRule({ ...ready.body, id: ready.id })
  expect(saved.pattern).toEqual(rule.pattern)
  expect(patternValue(saved.pattern)).toBe('product')
  expect(saved.levels.map(({ strategies }) => strategies[0]!.strategy)).toEqual([strategy])
  expect(parseRule((readyToSave(draftOf(saved, false), [saved]) as { body: object }).body)).toEqual(saved)
})

test('editing one field of a rule with several levels leaves every other field as it was', () => {
  const changed = withLevel(deep, 1, (level) => withThreshold(level, 2000))
  const { body } = readyToSave(draftOf(changed, false), [deep]) as { body: Rule }
  expect(parseRule(body)).toEqual({
    ...deep,
    levels: [deep.levels[0], { ...deep.levels[1], enter: 2000, exit: 1000 }, deep.levels[2]],
  })
  const limited = withLevel(deep, 2, (level) => withLimit(withStrategy(level, 'RateLimit'), 80))
  expect(limited.levels[2]!.strategies).toEqual([{ ...deep.levels[2]!.strategies[0], limit: 80 }])
})

test('a new rule does not take the place of one with its name', () => {
  const draft = draftOf({ ...newDraft().rule!, id: 'deep' }, true)
  expect(readyToSave(draft, [deep])).toEqual({
    problem: 'There is a rule deep already: edit that one, or choose another name.',
  })
  expect(readyToSave(draft, [])).toHaveProperty('id', 'deep')
  expect(readyToSave(draftOf({ ...deep, id: 'other' }, false), [deep])).toHaveProperty('problem')
})

test('JSON that cannot be read is not saved; the short form is saved as it is written, without the form', () => {
  expect(readyToSave(draftOfJson('{', true), [])).toHaveProperty('problem')
  expect(readyToSave(draftOfJson('7', true), [])).toHaveProperty('problem')
  const short = draftOfJson('{"id":"a","prefix":"a_","threshold":5}', true)
  expect(short.rule).toBeUndefined()
  expect(readyToSave(short, [])).toEqual({ id: 'a', body: { id: 'a', prefix: 'a_', threshold: 5 } })
  expect(draftOfJson(JSON.stringify(deep), false).rule).toEqual(deep)
})
