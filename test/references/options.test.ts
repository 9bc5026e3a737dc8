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
