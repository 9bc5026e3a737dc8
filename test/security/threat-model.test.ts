import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)

test('every line of the threat model names a test, and the test is there', () => {
  const page = readFileSync(new URL('docs/guides/threat-model.md', root), 'utf8')
  const rows = page
    .slice(page.indexOf('| who |'), page.indexOf('## Who can do what'))
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

test('every test that the threat model names by its name is in the file that it names, in both languages', () => {
  for (const name of ['docs/guides/threat-model.md', 'docs/zh/guides/threat-model.md']) {
    const page = readFileSync(new URL(name, root), 'utf8')
    // A file in code, then the names in quotation marks up to the next file or the end of the cell.
    const named = [...page.matchAll(/`((?:test|packages)\/[\w./-]+\.test\.ts)`((?:[ ,、]*"[^"|]+")+)/g)]
    expect(named.length).toBeGreaterThan(12)
    for (const [, file, names] of named) {
      const source = readFileSync(new URL(file!, root), 'utf8')
      const titles = [...source.matchAll(/(?:test|\])?\(?\s*(['"`])((?:(?!\1).)+)\1,/g)].map(([, , title]) => title!)
      for (const [, title] of names!.matchAll(/"([^"]+)"/g))
        expect([file, title, titles.some((one) => one.includes(title!))]).toEqual([file, title, true])
    }
  }
})

test('each of those who reach a port has a row of what they can and cannot, with tests by their names', () => {
  const page = readFileSync(new URL('docs/guides/threat-model.md', root), 'utf8')
  const section = page.slice(page.indexOf('## Who can do what'), page.indexOf('## What the flood cost'))
  for (const who of ['neighbour', 'sensor', 'viewer', 'operator', 'Redis client']) {
    const row = section.split('\n').find((line) => line.startsWith('|') && line.split(' | ')[0]!.includes(who))
    expect([who, row?.split(' | ').length, row?.includes('"')]).toEqual([who, 4, true])
  }
})
