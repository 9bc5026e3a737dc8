import { expect, test } from 'vitest'
import { isAutoRule, runsBeside } from './auto-rule.ts'
import { knownRules } from './known-rules.ts'
import { parseRule } from './parse-rule.ts'

const rule = { id: 'auto', glob: '*', threshold: 'auto' }

test('a rule without a threshold is read, and what the hub gives out of it is read again', () => {
  const parsed = parseRule(rule)
  expect(parsed.levels).toMatchObject([{ auto: true, measure: 'reads', strategies: [{ strategy: 'LocalCache' }] }])
  expect(parseRule(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed)
  expect(knownRules([parsed])).toEqual({ rules: [parsed], unknownIds: [] })
  expect(
    parseRule({ ...rule, threshold: undefined, levels: [{ enter: 'auto', strategy: 'Observe' }] }).levels[0]!.auto,
  ).toBe(true)
  expect(isAutoRule(parsed)).toBe(true)
})

test('it is one that no window reaches, for whoever does not know it', () => {
  const [level] = parseRule(rule).levels
  expect([level!.enter, level!.exit]).toEqual([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])
})

test('numbers beside it are refused by name, and so are other levels', () => {
  expect(() => parseRule({ ...rule, exit: 5 })).toThrow('exit cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, share: 0.5 })).toThrow('share cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, measure: 'bytes' })).toThrow('measure cannot be combined with threshold: auto')
  expect(() => parseRule({ ...rule, threshold: 'automatic' })).toThrow('threshold')
  const levels = [{ threshold: 10 }, { threshold: 'auto' }]
  expect(() => parseRule({ id: 'two', glob: '*', levels })).toThrow('levels[1] is auto; it must be the only level')
})

test('only in shadow mode does it look on beside others', () => {
  expect(runsBeside(parseRule({ ...rule, mode: 'shadow' }))).toBe(true)
  expect(runsBeside(parseRule(rule))).toBe(false)
  expect(runsBeside(parseRule({ id: 'count', glob: '*', threshold: 5, mode: 'shadow' }))).toBe(false)
})

test('a level that is auto in a way that is unknown is left alone', () => {
  const parsed = parseRule(rule)
  const later = { ...parsed, levels: [{ ...parsed.levels[0], auto: 'by bytes' }] }
  expect(knownRules([later]).unknownIds).toEqual(['auto'])
})
