import { expect, test } from 'vitest'
import { defaultLocalCache } from '../strategy/strategy.ts'
import { parseRule } from './parse-rule.ts'
import { RuleInvalidError } from './rule-error.ts'

const short = { id: 'product', prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }

test('the short form becomes a whole rule with defaults', () => {
  expect(parseRule(short)).toEqual({
    id: 'product',
    mode: 'on',
    priority: 0,
    redisClusterId: '*',
    serviceId: '*',
    pattern: { kind: 'prefix', prefix: 'product_' },
    except: [],
    windowMs: 1000,
    levels: [{ measure: 'accesses', enter: 1000, exit: 700, strategies: [defaultLocalCache] }],
    minHoldMs: 10_000,
  })
})

test('the full form keeps every field', () => {
  const rule = parseRule({
    id: 'sale-1',
    mode: 'shadow',
    priority: 5,
    cluster: 'main',
    service: 'shop',
    pattern: { kind: 'regex', regex: '^item:\\d+$' },
    except: ['item:0', { suffix: '9' }, { kind: 'exact', keys: ['item:5'] }],
    windowMs: 3_600_000,
    levels: [
      { threshold: 100, exit: 50, strategies: ['Observe'] },
      { threshold: 500, strategy: { strategy: 'LocalCache', cacheSize: 10, consistent: false } },
      { measure: 'writes', enter: 50, strategy: { strategy: 'RateLimit', limit: 100, onLimit: 'wait' } },
      { measure: 'bytes', enter: 1e6, strategy: { strategy: 'RedundantKeys', copyCount: 8, template: '{key}#{n}' } },
      { measure: 'reads', share: 0.5, shareOf: 'node', shareMinimum: 10 },
    ],
    minHoldMs: 0,
    maxStalenessMs: 50,
  })
  expect(rule).toMatchObject({ mode: 'shadow', priority: 5, redisClusterId: 'main', serviceId: 'shop', minHoldMs: 0 })
  expect(rule.except).toEqual([
    { kind: 'glob', glob: 'item:0' },
    { kind: 'suffix', suffix: '9' },
    { kind: 'exact', keys: ['item:5'] },
  ])
  expect(rule.levels.map(({ enter, exit }) => [enter, exit])).toEqual([
    [100, 50],
    [500, 350],
    [50, 35],
    [1e6, 7e5],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])
  expect(rule.levels[1]!.strategies).toEqual([{ ...defaultLocalCache, cacheSize: 10, consistent: false }])
  expect(rule.levels[4]).toMatchObject({ enterShare: 0.5, exitShare: 0.35, shareOf: 'node', shareMinimum: 10 })
  expect(rule.maxStalenessMs).toBe(50)
})

test('a rule from the hub is accepted unchanged, also through JSON', () => {
  for (const input of [
    short,
    { id: 's', key: 'a', share: 0.5 },
    { ...short, strategies: ['RedundantKeys', 'Observe'] },
  ]) {
    const { strategy: _, ...rest } = input as Record<string, unknown>
    const rule = parseRule('strategies' in input ? rest : input)
    expect(parseRule(JSON.parse(JSON.stringify(rule)))).toEqual(rule)
  }
})

test.each(['exact', 'prefix', 'suffix', 'glob', 'regex'])('a pattern may be %s', (kind) => {
  const field = kind === 'exact' ? 'key' : kind
  expect(parseRule({ id: 'x', [field]: 'abc', threshold: 1 }).pattern.kind).toBe(kind)
})

test('YAML 1.1 reads on and off as booleans', () => {
  expect([true, false].map((mode) => parseRule({ ...short, mode }).mode)).toEqual(['on', 'off'])
})

test.each([
  [{ ...short, treshold: 5 }, 'treshold', 'unknown field treshold; did you mean threshold?'],
  [{ ...short, windowms: 5 }, 'windowms', 'did you mean windowMs?'],
  [{ ...short, zzz: 1 }, 'zzz', 'unknown field zzz'],
  [{ ...short, id: '' }, 'id', 'id is'],
  [{ ...short, id: undefined }, 'id', 'id is missing'],
  [{ ...short, id: 'a b' }, 'id', '1 to 64 letters'],
  [{ ...short, mode: 'onn' }, 'mode', 'one of off, shadow, on; did you mean on?'],
  [{ ...short, priority: 1.5 }, 'priority', 'a whole number'],
  [{ ...short, windowMs: 999 }, 'windowMs', 'windowMs is 999; it must be a whole number from 1,000 to 3,600,000'],
  [{ ...short, windowMs: 3_600_001 }, 'windowMs', '3,600,000'],
  [{ ...short, threshold: '1000' }, 'threshold', 'threshold is "1000"; it must be a number'],
  [{ ...short, threshold: undefined }, 'threshold', 'threshold is missing'],
  [{ ...short, exit: 2000 }, 'exit', 'exit is 2000; it must be a number from 0 to 1,000'],
  [{ ...short, minHoldMs: -1 }, 'minHoldMs', 'minHoldMs is -1'],
  [
    { ...short, strategy: 'LocalCash' },
    'strategy',
    'strategy is "LocalCash"; it must be one of LocalCache, RedundantKeys, RateLimit, Combine, Observe; did you mean LocalCache?',
  ],
  [{ ...short, strategy: { strategy: 'LocalCache', cachesize: 1 } }, 'strategy.cachesize', 'did you mean cacheSize?'],
  [{ ...short, strategy: { strategy: 'RateLimit' } }, 'strategy.limit', 'strategy.limit is missing'],
  [
    { ...short, strategy: { strategy: 'RateLimit', limit: 5, algorithm: 'slidingLog', burst: 2 } },
    'strategy.burst',
    'slidingLog has no burst',
  ],
  [
    { ...short, strategy: { strategy: 'RateLimit', limit: 5, unit: 'day' } },
    'strategy.unit',
    'only apply to calendarWindow',
  ],
  [
    { ...short, strategy: { strategy: 'RateLimit', limit: 5, algorithm: 'calendarWindow', timeZone: 'Mars/Base' } },
    'strategy.timeZone',
    'an IANA name',
  ],
  [{ ...short, strategy: { strategy: 'Combine', maxCombined: 1 } }, 'strategy.maxCombined', 'maxCombined is 1'],
  [{ ...short, strategy: { strategy: 'RedundantKeys', template: 'x' } }, 'strategy.template', '{key} and {n}'],
  [{ ...short, strategies: [], strategy: undefined }, 'strategies', 'strategies is empty'],
  [{ ...short, strategies: ['Observe'] }, 'strategies', 'cannot be combined with strategy'],
  [{ ...short, key: 'a' }, 'prefix', 'cannot be combined with key'],
  [{ ...short, prefix: undefined }, 'pattern', 'pattern is missing: give one of key'],
  [{ ...short, prefix: undefined, prefx: 'product_' }, 'prefx', 'unknown field prefx; did you mean prefix?'],
  [{ ...short, prefix: undefined, keys: [] }, 'keys', 'keys has 0 keys'],
  [{ ...short, prefix: undefined, keys: ['a', 5] }, 'keys[1]', 'keys[1] is 5'],
  [{ ...short, prefix: undefined, regex: 'a(?=b)' }, 'regex', 'look-ahead'],
  [{ ...short, prefix: undefined, pattern: { kind: 'glob', prefix: 'a' } }, 'pattern.kind', 'but prefix is given'],
  [{ ...short, except: [''] }, 'except[0]', 'is empty'],
  [{ ...short, except: [{ preffix: 'a' }] }, 'except[0].preffix', 'did you mean prefix?'],
  [{ ...short, except: 'a' }, 'except', 'it must be a list'],
  [{ ...short, levels: [{ threshold: 5 }] }, 'threshold', 'cannot be combined with levels'],
  [{ id: 'x', key: 'a', levels: [] }, 'levels', 'levels has 0 levels'],
  [
    { id: 'x', key: 'a', levels: [{ threshold: 5 }, { threshold: 5 }] },
    'levels[1].enter',
    'must be above the level before it (5)',
  ],
  [{ id: 'x', key: 'a', levels: [{ threshold: 5 }, { thresold: 7 }] }, 'levels[1].thresold', 'did you mean threshold?'],
  [{ id: 'x', key: 'a', share: 2 }, 'share', 'share is 2'],
  [{ id: 'x', key: 'a', threshold: 2, exitShare: 0.5 }, 'exitShare', 'needs a share'],
  ['product', '', 'it must be an object'],
  [[], '', 'it must be an object'],
])('%j is refused: %s', (input, field, message) => {
  let caught: unknown
  try {
    parseRule(input)
  } catch (error) {
    caught = error
  }
  expect(caught).toBeInstanceOf(RuleInvalidError)
  expect((caught as RuleInvalidError).message).toContain(message)
  expect((caught as RuleInvalidError).field).toBe(field)
})
