import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

/** The fields of an interface, as its source has them. */
function fieldsOf(path: string, name: string): string[] {
  const body = read(path).match(new RegExp(`export interface ${name}\\b[\\s\\S]*?\\n}`))![0]
  return Array.from(body.matchAll(/^ {2}readonly (\w+)\??:/gm), ([, field]) => field!)
}

test('the table of protect() has every option, and no other', () => {
  const [, table] = read('docs/guides/client.md').match(/^## Options\n[\s\S]*?\n(\|[\s\S]*?)\n\n/m)!
  const rows = Array.from(table!.matchAll(/^\| `(\w+)`/gm), ([, name]) => name!)
  const options = [
    ...fieldsOf('packages/shield/src/shield-options.ts', 'ShieldOptions'),
    ...fieldsOf('packages/client/src/protect-options.ts', 'ProtectOptions'),
    ...fieldsOf('packages/core/src/node/key-redaction.ts', 'KeyRedactionOptions'),
  ]
  expect(options.length).toBeGreaterThan(25)
  expect([...rows].sort()).toEqual([...options].sort())
})

/** What the parsers of rules ask a rule for. */
const ruleSources = ['parse-rule', 'parse-strategy', 'parse-pattern', 'rollout']
  .map((name) => `packages/core/src/rules/${name}.ts`)
  .map(read)
  .join('\n')

test('the page of rules has every field that is read, and no other', () => {
  const page = read('docs/reference/rules.md')
  const readers = /\.(?:text|number|choice|list|flag|boolean|raw|has)\(\s*'(\w+)'/g
  const fields = new Set(Array.from(ruleSources.matchAll(readers), ([, name]) => name!))
  expect(fields.size).toBeGreaterThan(30)
  const shown = new Set(Array.from(page.matchAll(/`(\w+)`|[{,] ?(\w+)[,:}]/g), ([, word, inner]) => word ?? inner!))
  expect([...fields].filter((field) => !shown.has(field))).toEqual([])
  // The first column of the two tables of fields.
  const rows = page.slice(0, page.indexOf('A strategy is its name')).matchAll(/^\| (`.*?) \|/gm)
  const documented = Array.from(rows, ([, cell]) => cell!.match(/\w+(?=`)/g)!).flat()
  expect(documented.length).toBeGreaterThan(20)
  expect(documented.filter((name) => !ruleSources.includes(`'${name}'`))).toEqual([])
})
