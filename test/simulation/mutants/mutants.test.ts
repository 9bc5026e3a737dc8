import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mutants } from './mutants.ts'

const root = new URL('../../../', import.meta.url)

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  '%s: where it is planted stands once',
  (_, mutant) => {
    const text = readFileSync(new URL(mutant.file, root), 'utf8')
    expect(text.split(mutant.find).length - 1).toBe(1)
    expect(mutant.replace).not.toBe(mutant.find)
  },
)

test('there are thirty and more, each with a name of its own', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})
