// `npm run suites -- LIBRARY FOLDER`: a library's own tests, plain and under Firebreak, and what differs.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { temporaryFolder } from '@firebreak/testkit'
import { differences, explain } from './compare-runs.ts'
import { expectedDifferences } from './expected-differences.ts'
import { suites } from './known-suites.ts'
import { printRun, printTable } from './print-runs.ts'
import { runSuite, type SuiteRun } from './run-suite.ts'
import { ways as allWays, type Way } from './suite.ts'

const usage = `usage: npm run -s suites -- LIBRARY FOLDER [--ways ${allWays.join(',')}] [--max-minutes 30] [--reports FOLDER] [-- WORDS…]
libraries: ${Object.keys(suites).join(', ')}
FOLDER holds the library's sources and its own tests, with what they need installed. WORDS go to its test command.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ways: { type: 'string' },
    'max-minutes': { type: 'string', default: '30' },
    reports: { type: 'string' },
  },
})
const [name = '', place = '', ...more] = positionals
const suite = suites[name]
const folder = resolve(process.env['INIT_CWD'] ?? '.', place)
if (suite === undefined || place === '' || !existsSync(folder)) {
  process.stderr.write(usage)
  process.exit(2)
}
const wanted = (values.ways?.split(',') ?? suite.ways) as Way[]
const ways = suite.ways.filter((way) => way === 'plain' || wanted.includes(way))
const reports = values.reports ?? join(temporaryFolder('suites'), name)
// Whatever ends the runner ends the suite too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
const runs: SuiteRun[] = []
for (const way of ways) {
  const run = await runSuite(suite, way, { folder, reports, maxMs: Number(values['max-minutes']) * 60_000, more })
  runs.push(run)
  printRun(run)
}
const plain = runs[0]!.results
const explained = runs
  .slice(1)
  .flatMap(({ way, results }) => explain(name, differences(way, plain, results), expectedDifferences))
printTable(name, runs, explained)
process.exit(explained.some(({ expected }) => expected === undefined) || plain.size === 0 ? 1 : 0)
