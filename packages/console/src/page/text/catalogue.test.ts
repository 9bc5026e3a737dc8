import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { zh } from './zh.ts'

/** Texts that reach `t` as a value: words of the API, titles in tables. */
const words = [
  // pages, groups, themes, periods
  ...[
    'Watch',
    'Decide',
    'Services',
    'Plane',
    'Overview',
    'Hot keys',
    'Heat map',
    'Timeline',
    'Reports',
    'Rules',
    'Autopilot',
  ],
  ...['Alerts', 'Audit', 'Limits', 'Locks', 'Ids', 'Sale', 'Big keys · Finders', 'Fleet', 'Settings'],
  ...['As the system', 'Light', 'Dark', '1 min', '2 min', '15 min', '1 h', '6 h', '1 day', '7 days', 'day', 'week'],
  // states and kinds
  ...['cold', 'warming', 'hot', 'cooling', 'cooled', 'extended', 'strategy', 'rollback', 'claim', 'shadow', 'prewarm'],
  ...['alarm', 'delivered', 'handled', 'inactive', 'pending', 'firing', 'warning', 'critical', 'raised', 'cleared'],
  ...['test', 'connecting', 'live', 'lagging', 'failed', 'closed', 'running', 'done', 'stopped', 'big', 'slots'],
  ...['slot', 'node', 'prefix', 'key', 'on', 'off', 'viewer', 'operator', 'admin', 'app', 'person'],
  ...['accesses', 'reads', 'writes', 'bytes', 'are refused', 'wait', 'get the last known value'],
  ...['Limit', 'Cache', 'Copy', 'Pre-warm', 'Ignore', 'Key', 'Rule', 'Service', 'Person', 'serving', 'paused'],
  ...['only suggest', 'warm automatically'],
  ...['placed', 'paid', 'cancelled', 'expired', 'refunded'],
  ...['tables', 'reports and tables', 'refused'],
  ...['is refused', 'gets the last known value', 'waits', 'only observed', 'not handled', 'leftOut'],
]

const page = join(import.meta.dirname, '..')
const sources = readdirSync(page, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !/\.test\.|zh\.ts$/.test(name))
  .map((name) => ({ name, source: readFileSync(join(page, name), 'utf8') }))
const literals = sources.flatMap(({ source }) =>
  [...source.matchAll(/\bt\(\s*'((?:[^'\\]|\\.)*)'/g)].map(([, text]) => text!),
)

test('every text of the page has a Chinese one, and the catalogue has nothing that the page does not say', () => {
  const said = new Set([...literals, ...words])
  expect([...said].filter((text) => (zh[text] ?? '') === '')).toEqual([])
  expect(Object.keys(zh).filter((text) => !said.has(text))).toEqual([])
})

test('both languages have the same values in each text', () => {
  const valuesOf = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
  const differing = Object.entries(zh).filter(([english, chinese]) => `${valuesOf(english)}` !== `${valuesOf(chinese)}`)
  expect(differing).toEqual([])
})

test('no page writes a sentence beside the catalogue', () => {
  // Names that are the same in every language.
  const names = ['Firebreak', 'CSV', 'JSON']
  const inside = />\s*([A-Za-z][^<>{}()=]*[a-z]{2}[^<>{}()=]*?)\s*<\//g
  const ownLine = /^\s+([A-Z][a-z]+(?: [A-Za-z,.'-]+)+[.:]?)$/gm
  const bare = sources
    .filter(({ name }) => name.endsWith('.tsx'))
    .flatMap(({ name, source }) =>
      [...source.matchAll(inside), ...source.matchAll(ownLine)].map(([, text]) => ({ name, text })),
    )
    .filter(({ text }) => !names.includes(text!))
  expect(bare).toEqual([])
})
