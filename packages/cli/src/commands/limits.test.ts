import { expect, test } from 'vitest'
import { limitsCommand } from './limits.ts'

test('the help shows examples under their heading, and every flag', () => {
  expect(limitsCommand.help).toMatch(/^Examples:\n {2}firebreak limits /m)
  for (const flag of limitsCommand.flags ?? []) expect(limitsCommand.help).toContain(`--${flag}`)
})
