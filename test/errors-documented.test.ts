import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

test('every error code in the sources stands in docs/reference/errors.md', () => {
  const documented = new Set(readFileSync(join(root, 'docs/reference/errors.md'), 'utf8').match(/FB_[A-Z0-9_]+/g))
  const used = new Set<string>()
  for (const room of readdirSync(join(root, 'packages'))) {
    const folder = join(root, 'packages', room, 'src')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!/\.tsx?$/.test(file) || file.endsWith('.test.ts')) continue
      for (const [, code] of readFileSync(join(folder, file), 'utf8').matchAll(/'(FB_[A-Z0-9_]+)'/g)) used.add(code!)
    }
  }
  expect(used.size).toBeGreaterThan(4)
  expect([...used].filter((code) => !documented.has(code)).sort()).toEqual([])
})
