// `npm run suites -- LIBRARY FOLDER`: a library's own tests, plain and under Firebreak, and what differs.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { temporaryFolder } from '@firebreak/testkit'
import { compareRuns, exitCodeOf, explain } from './compare-runs.ts'
import { expectedDifferences } from './expected-differences.ts'
import { suites } from './known-suites.ts'
import { printEntries, printRun, printTable } from './print-runs.ts'
import { runSuite, type SuiteRun } from './run-suite.ts'
import { ways as allWays } from './suite.ts'

const usage = `usage: npm run -s suites -- LIBRARY FOLDER [--ways ${allWays.join(',')}] [--max-minutes 30] [--reports FOLDER] [-- WORDS…]
libraries: ${Object.keys(suites).join(', ')}
FOLDER holds the library's sources and its own tests, with what they need installed. WORDS go to its test command.
A run is ended after --max-minutes. Exit code: 0 nothing differs that is not explained, 1 something does or a run has no test,
3 nothing does as far as the runs came, but one of them did not come to every test.
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
const wanted = values.ways?.split(',') ?? suite.ways
const unknown = wanted.filter((way) => !(suite.ways as readonly string[]).includes(way))
if (unknown.length > 0) {
  process.stderr.write(`${name} has no way "${unknown[0]}". Choose from ${suite.ways.join(', ')}.\n`)
  process.exit(2)
}
const maxMinutes = Number(values['max-minutes'])
if (!(maxMinutes > 0 && maxMinutes <= 24 * 60)) {
  process.stderr.write(`--max-minutes takes a number of minutes, not "${values['max-minutes']}"\n`)
  process.exit(2)
}
const ways = suite.ways.filter((way) => way === 'plain' || wanted.includes(way))
const reports = values.reports ?? join(temporaryFolder('suites'), name)
// Whatever ends the runner ends the suite too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
const runs: SuiteRun[] = []
for (const way of ways) {
  const run = await runSuite(suite, way, { folder, reports, maxMs: maxMinutes * 60_000, more })
  runs.push(run)
  printRun(run)
  const leftOut = suite.leaveOut?.[way]
  if (leftOut !== undefined) process.stdout.write(`${way}: left out ${leftOut.words.join(' ')}: ${leftOut.reason}\n`)
}
const [plain, ...others] = runs
const comparisons = others.map((run) => compareRuns(plain!, run))
const explained = comparisons.flatMap((comparison) => explain(name, comparison, expectedDifferences))
printTable(name, runs, comparisons, explained)
printEntries(name, comparisons, expectedDifferences)
process.exit(exitCodeOf(runs, comparisons, explained))
