import { limitAlgorithms, limitScopes } from '@firebreak/core'
import { parseRule, type Rule, type RuleLevel } from '@firebreak/core/rules'
import { expect, test, vi } from 'vitest'

vi.stubGlobal('localStorage', { getItem: () => null, setItem() {} })
const {
  calendarUnits,
  draftOf,
  draftOfJson,
  newDraft,
  patternKinds,
  patternOf,
  patternValue,
  readyToSave,
  strategyNames,
  withAuto,
  withField,
  withLevel,
  withNewLevel,
  withNewStrategy,
  withoutLevel,
  withoutStrategy,
  withParameter,
  withRollout,
  withShare,
  withStrategy,
  withThreshold,
} = await import('./rule-draft.ts')

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
    ...withLevel(whole, 0, (level) => withStrategy(level, 0, strategy)),
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
  const limited = withLevel(deep, 2, (level) => withParameter(withStrategy(level, 0, 'RateLimit'), 0, 'limit', 80))
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

test('every field that the form has is one that the hub takes, and comes back unchanged', () => {
  const draft = newDraft({ name: 'user:1', redisClusterId: 'main', rate: 900 })
  const wide = withNewLevel({ ...draft.rule!, id: 'all' })
  const level = withShare(withNewStrategy(wide.levels[1]!), 0.3)
  const cached = withParameter(withParameter(level, 0, 'maxStalenessMs', 40), 1, 'copyCount', 7)
  const rule = {
    ...withField(withField(wide, 'maxStalenessMs', 100), 'until', 1_900_000_000_000),
    levels: [withThreshold(wide.levels[0]!, 10), cached],
    except: [patternOf('suffix', ':lock')],
  }
  expect(parseRule(rule)).toEqual(rule)
  expect(rule.pattern).toEqual({ kind: 'exact', keys: ['user:1'] })
  expect(cached.strategies).toMatchObject([
    { strategy: 'LocalCache', maxStalenessMs: 40 },
    { strategy: 'RedundantKeys', copyCount: 7 },
  ])
  expect(withoutStrategy(cached, 0).strategies).toMatchObject([{ strategy: 'RedundantKeys' }])
  expect(
    parseRule(withoutLevel({ ...rule, levels: [rule.levels[0]!, withShare(cached, undefined)] }, 0)).levels,
  ).toHaveLength(1)
  expect(withField({ a: 1, b: 2 }, 'a', undefined)).toEqual({ b: 2 })
})

/** Rules as somebody clicks them together in the form, one option at a time. */
const whole = { ...newDraft().rule!, id: 'clicked', pattern: patternOf('prefix', 'k') }
const limited = withLevel(whole, 0, (level) => withStrategy(level, 0, 'RateLimit'))
const copied = withLevel(whole, 0, (level) => withStrategy(level, 0, 'RedundantKeys'))
const set = (rule: Rule, name: string, value: unknown) =>
  withLevel(rule, 0, (level) => withParameter(level, 0, name, value))
const bursting = set(limited, 'burst', 5)
const daily = set(bursting, 'algorithm', 'calendarWindow')
const clicked: readonly (readonly [string, Rule])[] = [
  ...limitAlgorithms.map((one) => [`algorithm ${one} after a burst`, set(bursting, 'algorithm', one)] as const),
  ...limitAlgorithms.map((one) => [`algorithm ${one} after a calendar`, set(daily, 'algorithm', one)] as const),
  ...calendarUnits.map((one) => [`each ${one}`, set(set(daily, 'timeZone', 'Asia/Shanghai'), 'unit', one)] as const),
  ...limitScopes.map((one) => [`scope ${one}`, set(limited, 'scope', one)] as const),
  ...(['reject', 'wait', 'stale'] as const).map((one) => [`refused: ${one}`, set(limited, 'onLimit', one)] as const),
  ...(['accesses', 'reads', 'writes', 'bytes'] as const).map(
    (measure) => [`measure ${measure}`, withLevel(whole, 0, (level: RuleLevel) => ({ ...level, measure }))] as const,
  ),
  ['copies a node', set(copied, 'copiesPerNode', 2)],
  ['copies as long as their key', set(copied, 'ttl', 'key')],
  ['copies renewed again', set(set(copied, 'ttl', 'key'), 'ttl', undefined)],
  ['auto', withLevel(whole, 0, (level) => withAuto(level, true))],
  ['auto and back', withLevel(whole, 0, (level) => withAuto(withAuto(level, true), false))],
  ['rolled out', withRollout(whole, 25)],
  ['rolled out after a stop', withRollout({ ...whole, rollout: { percent: 0, stepMs: 5000, stopped: 'errors' } }, 5)],
  ['rolled out to all', withRollout(withRollout(whole, 25), undefined)],
]

test.each(clicked)('the option "%s" of the form is one that the hub takes, and comes back unchanged', (_, rule) => {
  expect(parseRule(rule)).toEqual(rule)
})
