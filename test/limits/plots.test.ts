import { readFileSync } from 'node:fs'
import { startSource } from '@firebreak/testkit'
import { expect, test } from 'vitest'

test('the picture in the guide shows what the code admits', async () => {
  const drawing = startSource(new URL('../../bench/limits/plots.ts', import.meta.url), ['--print'])
  expect(await drawing.exited).toBe(0)
  const picture = readFileSync(new URL('../../docs/guides/limits-admission.svg', import.meta.url), 'utf8')
  expect(drawing.output()).toBe(picture)
})
