import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)

test('every line of the threat model names a test, and the test is there', () => {
  const page = readFileSync(new URL('docs/guides/threat-model.md', root), 'utf8')
  const rows = page
    .slice(page.indexOf('| who |'), page.indexOf('## What the flood cost'))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
  expect(rows.length).toBeGreaterThan(20)
  let last: readonly string[] = []
  for (const row of rows) {
    const cell = row.split(' | ').at(-1)!
    const files = [...cell.matchAll(/`((?:test|packages)\/[\w./-]+)`/g)].map(([, file]) => file!)
    if (cell.startsWith('the same')) expect(last, row).not.toEqual([])
    else expect(files, row).not.toEqual([])
    for (const file of files) expect(existsSync(new URL(file, root)), file).toBe(true)
    if (files.length > 0) last = files
  }
})
