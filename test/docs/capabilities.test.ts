import { commands } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { readPage } from './pages.ts'

const page = 'docs/guides/architecture.md'
const section = readPage(page).match(/## What it can do, and where\n([\s\S]*?)\n## /)![1]!
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| capability'))
  .map((line) => line.split(' | ') as [string, string, string])

/** Pages with names that apply everywhere: settings, commands, rules. */
const everywhere = ['cli', 'config', 'rules', 'api'].map((name) => readPage(`docs/reference/${name}.md`)).join('\n')

test('the table of capabilities is whole: each row has what to use and where to read', () => {
  expect(rows.length).toBeGreaterThan(80)
  for (const row of rows) {
    expect(row, row[0]).toHaveLength(3)
    expect(row[1], row[0]).toMatch(/`|Console: /)
    expect(row[2], row[0]).toMatch(/\]\(/)
  }
})

test.each(rows)('%s: by what exists', (_, by, read) => {
  const pages = [...read.matchAll(/\]\(([^)#]+)/g)].map(([, link]) => readPage(`docs/guides/${link}`))
  const text = [...pages, everywhere].join('\n')
  for (const [, name] of by.matchAll(/`([^`]+)`/g)) {
    if (name!.startsWith('firebreak ')) {
      expect(commands.map((command) => command.name)).toContain(name!.split(' ')[1])
      continue
    }
    // Only a separate name counts: a flag, a call, an option.
    const found = new RegExp(`(?<![\\w-])${name!.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}(?![\\w-])`).test(text)
    expect(found, name).toBe(true)
  }
  const console = by.match(/Console: ([^`]+?)(?:, `|$)/)?.[1]
  if (console !== undefined) expect(readPage('docs/guides/console.md')).toMatch(new RegExp(`^\\| ${console} \\|`, 'm'))
})

test('every command is in the table', () => {
  const used = new Set([...section.matchAll(/`firebreak ([a-z]+)/g)].map(([, name]) => name))
  const missing = commands.map(({ name }) => name).filter((name) => !used.has(name))
  // These commands are about the command line itself.
  expect(missing).toEqual(['completion', 'man'])
})
