import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { anchorsOf, readPage, root } from './pages.ts'

const runbook = readPage('docs/guides/runbook.md')

test('every alarm that a hub raises is in the runbook, with a link to its section', () => {
  const ids = alarmIds()
  expect(ids.size).toBeGreaterThan(20)
  const links = [...runbook.matchAll(/\| \[`([a-z-]+:?)[^`]*`\]\(#([\w-]+)\)/g)]
  expect(new Set(links.map(([, id]) => id))).toEqual(ids)
  const anchors = anchorsOf(runbook)
  for (const [, id, anchor] of links) expect(anchors, id).toContain(anchor)
})

test('every Prometheus alert that we ship is in the runbook', () => {
  const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8').matchAll(/- alert: (\w+)/g)
  const names = Array.from(alerts, ([, name]) => name!)
  expect(names.length).toBeGreaterThan(5)
  for (const name of names) expect(runbook).toContain(`\`${name}\``)
})

/** The ids of alarms in the hub's sources; of one with a name in it (`stale:RULE`) what comes before, with its colon. */
function alarmIds(): Set<string> {
  const folder = join(root, 'packages/hub/src')
  const ids = new Set<string>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue
    const source = readFileSync(join(folder, file), 'utf8')
    for (const [, id] of source.matchAll(/\.raise\(\{\s*(id(?:: [^,\n]+)?),/g)) {
      const found = idsOf(id === 'id' ? 'id' : id!.slice('id: '.length), source)
      // An alarm that is raised in a way that this test cannot read would go unnoticed.
      expect(found, `${file}: ${id}`).not.toEqual([])
      for (const one of found) ids.add(one)
    }
    const readable = source.match(/\.raise\(\{\s*id\b/g)?.length ?? 0
    const raises = source.match(/(?:alarms|board)\.raise\(/gi)?.length ?? 0
    expect(readable, `${file}: an alarm whose id does not come first`).toBe(raises)
  }
  return ids
}

/** What an expression for an id may be: text, a template, or a name that the same file gives one. */
function idsOf(expression: string, source: string): string[] {
  const text = expression.match(/^'([^']+)'$/)?.[1]
  if (text !== undefined) return [text]
  if (/^`\$\{step\}:/.test(expression)) {
    return Array.from(source.matchAll(/#raise\(\s*'(\w+)'/g), ([, step]) => `${step}:`)
  }
  const start = expression.match(/^`([a-z-]+:)\$\{/)?.[1]
  if (start !== undefined) return [start]
  const name = expression.replace(/^this\./, '')
  const escaped = name.replace('#', '\\#')
  const given = source.match(new RegExp(`(?:const ${escaped} = |get ${escaped}\\(\\): string \\{\\s*return )(.+)`))?.[1]
  return given === undefined || given === expression ? [] : idsOf(given, source)
}
