import { expect, test } from 'vitest'
import { isAutoRule, runsBeside } from './auto-rule.ts'
import { knownRules } from './known-rules.ts'
import { parseRule } from './parse-rule.ts'

const rule = { id: 'auto', glob: '*', threshold: 'auto' }

test('a rule without a threshold is accepted, and so is the rule that the hub derives from it', () => {
  const parsed = parseRule(rule)
  expect(parsed.levels).toMatchObject([{ auto: true, measure: 'reads', strategies: [{ strategy: 'LocalCache' }] }])
  expect(parseRule(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed)
  expect(knownRules([parsed])).toEqual({ rules: [parsed], unknownIds: [] })
  expect(
    parseRule({ ...rule, threshold: undefined, levels: [{ enter: 'auto', strategy: 'Observe' }] }).levels[0]!.auto,
  ).toBe(true)
  expect(isAutoRule(parsed)).toBe(true)
})

test('no window reaches its threshold in a process that does not know automatic rules', () => {
  const [level] = parseRule(rule).levels
  expect([level!.enter, level!.exit]).toEqual([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])
})

test('explicit numbers next to it are refused by name, and so are other levels', () => {
  expect(() => parseRule({ ...rule, exit: 5 })).toThrow('exit cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, share: 0.5 })).toThrow('share cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, measure: 'bytes' })).toThrow('measure cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, threshold: 'automatic' })).toThrow('threshold')
  const levels = [{ threshold: 10 }, { threshold: 'auto' }]
  expect(() => parseRule({ id: 'two', glob: '*', levels })).toThrow('levels[1] is auto; it must be the only level')
})

test('it may observe next to other rules only in shadow mode', () => {
  expect(runsBeside(parseRule({ ...rule, mode: 'shadow' }))).toBe(true)
  expect(runsBeside(parseRule(rule))).toBe(false)
  expect(runsBeside(parseRule({ id: 'count', glob: '*', threshold: 5, mode: 'shadow' }))).toBe(false)
})

test('a level with an unknown kind of auto is left alone', () => {
  const parsed = parseRule(rule)
  const later = { ...parsed, levels: [{ ...parsed.levels[0], auto: 'by bytes' }] }
  expect(knownRules([later]).unknownIds).toEqual(['auto'])
})
