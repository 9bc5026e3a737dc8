import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NameFilter } from './name-filter.ts'

test('a name that was added and not taken away is never denied', () => {
  const step = fc.record({ name: fc.string({ maxLength: 60, unit: 'binary' }), isAdded: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const filter = new NameFilter()
      const oracle = new Set<string>()
      for (const { name, isAdded } of steps) {
        if (isAdded && !oracle.has(name)) filter.add(name)
        if (!isAdded && oracle.has(name)) filter.remove(name)
        if (isAdded) oracle.add(name)
        else oracle.delete(name)
        for (const known of oracle) expect(filter.mayHave(known)).toBe(true)
      }
    }),
    { numRuns: 20 },
  )
})

test('a slot that was full is never taken for empty', () => {
  const filter = new NameFilter()
  for (let count = 0; count < 300; count++) filter.add('k')
  for (let count = 0; count < 299; count++) filter.remove('k')
  expect(filter.mayHave('k')).toBe(true)
})

test.each([
  ['numbers at the end', (index: number) => `product:${index}`],
  ['numbers before the end', (index: number) => `user:${index}:profile`],
  ['long names', (index: number) => `${'a'.repeat(40)}:${index}:${'b'.repeat(20)}`],
])('with 100,000 names it lets few others pass: %s', (_, name) => {
  const filter = new NameFilter()
  for (let index = 0; index < 100_000; index++) filter.add(name(index))
  let passed = 0
  for (let index = 100_000; index < 120_000; index++) if (filter.mayHave(name(index))) passed++
  expect(passed / 20_000).toBeLessThan(0.15)
  for (let index = 0; index < 100_000; index++) filter.remove(name(index))
  for (let index = 0; index < 100_000; index++) if (filter.mayHave(name(index))) passed = -1
  expect(passed).toBeGreaterThanOrEqual(0)
})
