import { createContext, Script } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileLinearRegex, LinearRegex } from './linear-regex.ts'
import { RegexError } from './regex-error.ts'
import { maxRegexStates } from './regex-program.ts'

const atoms = fc.constantFrom(
  'a',
  'b',
  'c',
  '1',
  '_',
  ':',
  '.',
  '\\d',
  '\\w',
  '\\s',
  '\\D',
  '\\W',
  '\\S',
  '[ab]',
  '[^a]',
  '[a-c1]',
  '[^\\d_]',
  '[\\w-]',
  'é',
  '😀',
  '\\.',
  '\\x61',
  '\\u0062',
  '\\u{1F600}',
  '\\ud83d\\ude00',
  '[😀é]',
  '^',
  '$',
  '\\n',
  '[]',
  '[^]',
)
const expression: fc.Arbitrary<string> = fc.letrec<{ any: string; unit: string; sequence: string }>((tie) => ({
  unit: fc.oneof(
    { weight: 5, arbitrary: atoms },
    { weight: 2, arbitrary: tie('any').map((inner) => `(${inner})`) },
    { weight: 1, arbitrary: tie('any').map((inner) => `(?:${inner})`) },
    { weight: 1, arbitrary: tie('any').map((inner) => `(?<name>${inner.replaceAll('?<name>', '')})`) },
  ),
  sequence: fc
    .array(
      fc.tuple(tie('unit'), fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,3}', '{2,}', '{0}', '*?', '+?')),
      {
        maxLength: 4,
      },
    )
    .map((parts) => parts.map(([unit, mark]) => (unit === '^' || unit === '$' ? unit : unit + mark)).join('')),
  any: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    tie('sequence'),
    fc.array(tie('sequence'), { minLength: 2, maxLength: 3 }).map((options) => options.join('|')),
  ),
})).any

const text = fc
  .array(fc.constantFrom('a', 'b', 'c', 'd', '1', '2', '_', ':', '-', ' ', '\n', 'é', '😀', '\ud83d'), {
    maxLength: 12,
  })
  .map((characters) => characters.join(''))

const sandbox = createContext({})
const testAll = new Script('texts.map((text) => regex.test(text))')

/** The result of JavaScript's own engine; undefined where it would take for ever, as with some of these expressions. */
function testTheirs(regex: RegExp, texts: readonly string[]): boolean[] | undefined {
  Object.assign(sandbox, { regex, texts })
  try {
    return testAll.runInContext(sandbox, { timeout: 20 }) as boolean[]
  } catch {
    return undefined
  }
}

test('it matches exactly what JavaScript matches', () => {
  let compared = 0
  fc.assert(
    fc.property(expression, fc.array(text, { minLength: 5, maxLength: 20 }), (regex, texts) => {
      let theirs: RegExp
      try {
        theirs = new RegExp(regex, 'u')
      } catch {
        // Two groups with the same name: refused there, irrelevant here.
        return
      }
      let ours: (text: string) => boolean
      try {
        ours = compileLinearRegex(regex)
      } catch (error) {
        // Nested repetitions sometimes expand beyond the limit; nothing else may be refused.
        if (error instanceof RegexError && error.message.includes(`more than ${maxRegexStates} states`)) return
        throw error
      }
      const answers = testTheirs(theirs, texts)
      if (answers === undefined) return
      for (const [index, sample] of texts.entries()) {
        // Compared without `expect`: tens of thousands of calls take longer than the matching.
        if (ours(sample) !== answers[index]) expect.fail(`${regex} and ${JSON.stringify(sample)}: ${ours(sample)}`)
        compared++
      }
    }),
    { numRuns: 2000 },
  )
  expect(compared).toBeGreaterThan(10_000)
})

test('an expression that hangs a backtracking engine is fast', () => {
  const texts = ['a'.repeat(50_000), `${'a'.repeat(50_000)}b`]
  expect(texts.map(compileLinearRegex('^(a+)+$'))).toEqual([true, false])
  expect(texts.map(compileLinearRegex('(a|aa)+c'))).toEqual([false, false])
  expect(texts.map(compileLinearRegex('(.*a){20}b$'))).toEqual([false, true])
})

test('states beyond the cache are computed again, with correct results', () => {
  // The classic case: the automaton must remember which of the last 12 characters were an a, in 4,096 states.
  const matches = compileLinearRegex('a[ab]{12}$')
  const theirs = /a[ab]{12}$/u
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 10, maxLength: 3000 }), (sample) => {
      expect(matches(sample)).toBe(theirs.test(sample))
    }),
  )
})

test.each([
  ['(a)\\1', 'character 4: backreferences are not supported'],
  ['(?<x>a)\\k<x>', 'backreferences are not supported'],
  ['a(?=b)', 'character 2: look-ahead and look-behind are not supported'],
  ['(?<!a)b', 'look-ahead and look-behind are not supported'],
  ['\\bword', 'word boundary'],
  ['\\p{L}', 'Unicode property'],
  ['a**', 'two quantifiers in a row'],
  ['*a', 'nothing before "*"'],
  ['(a', '"(" without ")"'],
  ['a)', '")" without "("'],
  ['[a', '"[" without "]"'],
  ['[b-a]', 'wrong order'],
  ['a{3,2}', 'wrong order'],
  ['a{', '"{" must begin {n}'],
  ['a{2000}', 'at most 250'],
  ['a{0,251}', 'at most 250'],
  ['x'.repeat(1001), 'it has 1001 characters; at most 1000 are allowed'],
  ['((a{100}){100}){100}', 'more than 500 states'],
  ['\\q', '\\q means nothing'],
  ['a\\', '"\\" is the last character'],
  ['^*', 'an anchor cannot be repeated'],
  ['('.repeat(200), 'nested deeper than'],
])('%.24s is refused with the position and the reason', (regex, reason) => {
  expect(() => compileLinearRegex(regex)).toThrow(RegexError)
  expect(() => compileLinearRegex(regex)).toThrow(reason)
})

/** Expressions with the most states allowed, in which no set of states comes twice, or each contains all of them. */
const dearest = [
  '(a[ab]{123}c|b[ab]{122}d|[ab]{120}e|a[ab]{120}b)$',
  '(.*a){160}c$',
  '(a?){240}c$',
  '((a|b|ab|ba)*c?){35}d$',
  '([ab]?[ab]?){110}$c',
]

test.each(dearest)('%s costs at most 8 steps for each state and character', (regex) => {
  const keyLength = 1000
  // Bits of a linear congruential generator: no two stretches are the same.
  let state = 1
  const key = Array.from({ length: keyLength }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 16) % 2 === 0 ? 'a' : 'b'
  }).join('')
  const compiled = new LinearRegex(regex)
  expect(compiled.stateCount).toBeGreaterThan(maxRegexStates / 2)
  expect(compiled.stateCount).toBeLessThanOrEqual(maxRegexStates)
  compiled.test(key)
  expect(compiled.steps).toBeGreaterThan(0)
  expect(compiled.steps).toBeLessThanOrEqual(8 * compiled.stateCount * (keyLength + 1))
})

test('the most expensive expression defeats the cache: the limit on steps still holds', () => {
  const compiled = new LinearRegex(dearest[0]!)
  let state = 7
  let key = ''
  for (let index = 0; index < 1000; index++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    key += (state >>> 16) % 2 === 0 ? 'a' : 'b'
  }
  compiled.test(key)
  expect(compiled.steps).toBeGreaterThan(compiled.stateCount * 1000)
})

test('an expression of many different characters is compiled in a number of steps that its length limits', () => {
  const letters = Array.from({ length: 400 }, (_, index) => String.fromCodePoint(0x4e00 + index * 2))
  const compiled = new LinearRegex(letters.join(''))
  expect(compiled.test(`x${letters.join('')}`)).toBe(true)
  expect(compiled.test(letters.toReversed().join(''))).toBe(false)
  expect(() => new LinearRegex(letters.join('').repeat(2))).toThrow('more than 500 states')
})
