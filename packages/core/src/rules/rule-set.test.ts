import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRule } from './parse-rule.ts'
import { RuleSet } from './rule-set.ts'

const rule = (id: string, fields: Record<string, unknown>) => parseRule({ id, threshold: 1, ...fields })

function winner(set: RuleSet, cluster: string, service: string, key: string): string | undefined {
  return set.rules[set.match(cluster, service, key)]?.id
}

test('the highest priority wins, ties go to the smaller id', () => {
  const set = new RuleSet([
    rule('b', { prefix: 'p' }),
    rule('a', { prefix: 'p' }),
    rule('c', { prefix: 'pq', priority: 1 }),
  ])
  expect(winner(set, 'main', 'shop', 'p1')).toBe('a')
  expect(winner(set, 'main', 'shop', 'pq')).toBe('c')
  expect(winner(set, 'main', 'shop', 'x')).toBeUndefined()
})

test('rules of a cluster or a service apply only there, disabled rules nowhere', () => {
  const set = new RuleSet([
    rule('cluster', { prefix: 'k', cluster: 'one', priority: 3 }),
    rule('service', { prefix: 'k', service: 'shop', priority: 2 }),
    rule('off', { prefix: 'k', mode: 'off', priority: 9 }),
    rule('all', { prefix: 'k' }),
  ])
  expect(winner(set, 'one', 'shop', 'k')).toBe('cluster')
  expect(winner(set, 'two', 'shop', 'k')).toBe('service')
  expect(winner(set, 'two', 'web', 'k')).toBe('all')
})

test('a denied key is passed on to the next rule', () => {
  const set = new RuleSet([
    rule('most', { glob: '*', except: ['session:*', { suffix: ':tmp' }], priority: 1 }),
    rule('rest', { prefix: 'session:' }),
  ])
  expect(['a', 'session:1', 'a:tmp'].map((key) => winner(set, 'm', 's', key))).toEqual(['most', 'rest', undefined])
})

test('services with the same rules share a scope', () => {
  const set = new RuleSet([rule('a', { prefix: 'a' }), rule('b', { prefix: 'a', service: 'shop' })])
  expect(set.scope('m', 'web')).toBe(set.scope('other', 'api'))
  expect(set.scope('m', 'shop')).not.toBe(set.scope('m', 'web'))
})

test('the match is the same as by trying all rules in order', () => {
  const anyRule = fc.record({
    prefix: fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 }),
    priority: fc.integer({ min: 0, max: 2 }),
    service: fc.constantFrom('*', 's1', 's2'),
    mode: fc.constantFrom('on', 'off', 'shadow'),
  })
  const key = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 5 })
  fc.assert(
    fc.property(
      fc.array(anyRule, { maxLength: 8 }),
      key,
      fc.constantFrom('s1', 's2', 's3'),
      (inputs, name, service) => {
        const rules = inputs.map((fields, index) => rule(`r${index}`, fields))
        const fitting = rules
          .filter(({ mode }) => mode !== 'off')
          .filter(({ serviceId }) => serviceId === '*' || serviceId === service)
          .filter(({ pattern }) => pattern.kind === 'prefix' && name.startsWith(pattern.prefix))
          .sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
        expect(winner(new RuleSet(rules), 'm', service, name)).toBe(fitting[0]?.id)
      },
    ),
  )
})
