import { compileLinearRegex, compilePattern, parseRule, RuleSet } from '@firebreak/core/rules'
import { type FuzzTarget, LawBroken } from '../target.ts'

const json = (value: unknown) => Buffer.from(JSON.stringify(value))

/** Not JSON at all: the server's own parser refuses it before our reading begins. */
function parsed(input: Buffer): unknown {
  try {
    return JSON.parse(input.toString('utf8'))
  } catch {
    return undefined
  }
}

export const ruleTarget: FuzzTarget = {
  name: 'rule',
  jsonAt: () => 0,
  words: ['"', '*', '[^', '\\\\', 'LocalCache', 'RateLimit', '{1,1000}', '(', ')'],
  seeds: () => [
    json({ id: 'product', prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }),
    json({
      id: 'r',
      regex: '^user:[0-9]{1,20}$',
      share: 0.1,
      strategy: { strategy: 'RateLimit', limit: 10, windowMs: 1000 },
    }),
    json({
      id: 'g',
      glob: 'a*[b-d]?\\*',
      except: ['ab*', { suffix: 'x' }],
      levels: [{ threshold: 1 }, { threshold: 2, strategies: ['Observe', 'RedundantKeys'] }],
    }),
    json({
      id: 'k',
      keys: ['a', 'b'],
      mode: 'shadow',
      measure: 'bytes',
      threshold: 5,
      exit: 1,
      priority: 3,
      cluster: 'main',
      service: 's',
    }),
  ],
  run(input) {
    const rule = parseRule(parsed(input))
    const matches = compilePattern(rule.pattern)
    for (const key of ['product_1', 'user:123', 'aaaab*', '', '\ud800']) matches(key)
    new RuleSet([rule])
    const again = parseRule(JSON.parse(JSON.stringify(rule)))
    if (JSON.stringify(again) !== JSON.stringify(rule)) throw new LawBroken('a rule written again is another one')
  },
}

/** The expression up to the first line feed, then the key that it is tried on. */
export const regexTarget: FuzzTarget = {
  name: 'regex',
  words: [
    '(',
    ')',
    '|',
    '*',
    '+',
    '?',
    '{2,}',
    '{0,1000}',
    '{999}',
    '[^',
    ']',
    '\\u{1F600}',
    '\\d',
    '\\W',
    '.',
    '^',
    '$',
    '(?:',
    '(?<a>',
    '-',
    '\\ud83d\\ude00',
  ],
  seeds: () => [
    Buffer.from('^user:\\d{1,20}(:[a-z]+)*$\nuser:12345:abc:def'),
    Buffer.from('(a|aa)+c\naaaaaaaaaaaaaaaaaaaaaa'),
    Buffer.from('a[ab]{12}$\nabababababababababbbbaaaaababab'),
    Buffer.from('(.*x){20}y\nxxxxxxxxxxxxxxxxxxxxxxxxxx'),
    Buffer.from('[^\\d_-]|\\x61\\u0062\nä😀'),
  ],
  run(input) {
    const text = input.toString('utf8')
    const end = text.indexOf('\n')
    const matches = compileLinearRegex(end < 0 ? text : text.slice(0, end))
    const key = end < 0 ? '' : text.slice(end + 1)
    // The second walk takes remembered states.
    const first = matches(key)
    if (matches(key) !== first) throw new LawBroken('the same key gives two answers')
  },
}
