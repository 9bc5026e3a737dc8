import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { drillFigures, drillFiguresOfPage, readmeWith } from './readme-figures.ts'
import { readRun } from './report.ts'
import { reportPage } from './report-page.ts'

const output = `noise before
{"bench":"proxy","id":"p16-vs-direct","ratio":0.593,"of":"proxy","to":"direct"}
{"bench":"proxy","id":"get","value":123456.7,"unit":"GET/s","note":"a | b"}
{"bench":"proxy","machine":{"node":"24.0.0","cpu":"Some CPU","cores":2,"redis":"7.0.15"}}
`
const settings = { at: new Date('2026-11-18T00:00:00Z'), isQuick: true, load: 0.2 }

test('the page has machine, figures, bars and the command of each benchmark', () => {
  const page = reportPage([readRun('proxy', output)], settings)
  expect(page).toContain('| processor | Some CPU, 2 cores |')
  expect(page).toContain('`npm run -s bench -- proxy`, with redis 7.0.15')
  expect(page).toContain('| `p16-vs-direct` | 0.593 × (proxy to direct) | `███░░|░░░░░` |')
  expect(page).toContain('| `get` | 123,457 GET/s |  | a \\| b |')
  expect(page).not.toContain('Not complete')
})

test('a benchmark that failed or was cut off is listed, with its output so far', () => {
  const cut = readRun('heat', output.split('\n').slice(0, 2).join('\n'))
  const failed = readRun('locks', '', 'it ended with code 1')
  const page = reportPage([cut, failed], { ...settings, load: 9 })
  expect(page).toContain('Not complete: `heat` (it ended before its last line), `locks` (it ended with code 1).')
  expect(page).toContain('p16-vs-direct')
  expect(page).toContain('other programs were running')
})

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')
const readmes = ['README.md', 'README.zh.md'].map(read)
const drill = Object.entries({
  ...{ rounds: 6, 'detected-p50': 41.26, 'detected-max': 1234.5, 'delivered-p50': 52, 'delivered-max': 53 },
  ...{ 'served-from-memory-p50': 61, 'served-from-memory-max': 99.5, 'write-seen-p50': 1.04, 'write-seen-p99': 9.96 },
  ...{ 'redis-gets-before': 12345, 'redis-gets-after': 0 },
})
const drillOutput = `${drill.map(([id, value]) => JSON.stringify({ bench: 'drill', id, value, unit: 'ms' })).join('\n')}
{"bench":"drill","machine":{"node":"24.0.0"}}
`

test('the READMEs take their figures from the drill, alike in both languages', () => {
  const runs = [readRun('client', output), readRun('drill', drillOutput)]
  const figures = drillFigures(runs)!
  const [english, chinese] = readmes.map((readme) => readmeWith(readme, figures))
  expect(english).toContain('drill --rounds 6`')
  expect(english).toContain('| milliseconds | p50 | worst of 6 |')
  expect(english).toContain('| crossed → detected by the hub | 41 | 1235 |')
  expect(english).toContain("| a plain client's write → seen by every client | 1.0 | 10.0 (p99) |")
  expect(english).toContain('goes from 12,345 a second to 0;')
  expect(chinese).toContain('| 越过阈值 → 所有客户端由内存应答 | 61 | 100 |')
  expect(chinese).toContain('从每秒 12,345 次降到 0 次')
  // The page keeps three digits: what it says is what the READMEs say.
  const page = reportPage(runs, settings)
  expect(readmeWith(readmes[0]!, drillFiguresOfPage(page)!)).toBe(english)
  expect(() => readmeWith('another text', figures)).toThrow('the README has nothing like')
  expect(drillFigures([readRun('drill', '', 'it ended with code 1')])).toBeUndefined()
})

test('what the READMEs quote is what the page of benchmarks says, and the same in both', () => {
  const page = fileURLToPath(new URL('../../docs/reference/benchmarks.md', import.meta.url))
  // The page is written by a run of all benchmarks. Once it is there, it holds the figures, or this fails.
  if (existsSync(page)) {
    const figures = drillFiguresOfPage(readFileSync(page, 'utf8'))
    expect(figures).toBeDefined()
    for (const readme of readmes) expect(readmeWith(readme, figures!)).toBe(readme)
  }
  const quoted = (readme: string) =>
    readme.match(/drill --rounds[\s\S]*?[\d,]+( a second to | 次降到 )\d+/)![0].match(/[\d.,]*\d/g)
  expect(quoted(readmes[1]!)).toEqual(quoted(readmes[0]!))
})
