import { type Comparison, countsOf, type Expected, type Explained } from './compare-runs.ts'
import type { SuiteRun } from './run-suite.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

/** One line as soon as a run has ended. */
export function printRun({ way, results, facts, seconds, end }: SuiteRun): void {
  const { passed, failed, skipped } = countsOf(results)
  const clients = way === 'proxy' ? 'connections taken' : 'clients protected'
  const hot =
    facts === undefined
      ? ''
      : `; ${facts.clients} ${clients}, ${facts.refused} refused, ${facts.keys} keys hot, ${facts.loads} loads, ${facts.localHits} reads from memory, ${facts.copyReads} from copies`
  const ended = end === 'complete' ? '' : ` (${end})`
  print(`${way}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds.toFixed(0)} s${ended}${hot}`)
}

/** One run's cell of the guide's table; a star where the run did not come to its last test. */
export function cellOf(run: SuiteRun, comparison: Comparison | undefined, explained: readonly Explained[]): string {
  const { passed, failed } = countsOf(run.results)
  const counts = `${passed} of ${passed + failed}${run.end === 'complete' ? '' : '\\*'}`
  if (comparison === undefined) return counts
  const open = explained.filter(({ expected }) => expected === undefined).length
  const here = comparison.notRun.filter(({ missingIn }) => missingIn === 'here').length
  const plain = comparison.notRun.length - here
  return [
    counts,
    `${explained.length} differ${explained.length === 0 ? '' : ` (${open} unexplained)`}`,
    ...(here > 0 ? [`${here} not run`] : []),
    ...(plain > 0 ? [`${plain} not run plain`] : []),
  ].join(', ')
}

/** A row for the guide, then every difference with its reason, then what cannot be compared. */
export function printTable(
  name: string,
  runs: readonly SuiteRun[],
  comparisons: readonly Comparison[],
  explained: readonly Explained[],
): void {
  print('')
  print(`| suite | ${runs.map(({ way }) => way).join(' | ')} |`)
  print(`|${'---|'.repeat(runs.length + 1)}`)
  const cells = runs.map((run) => {
    const comparison = comparisons.find(({ way }) => way === run.way)
    return cellOf(
      run,
      comparison,
      explained.filter(({ difference }) => difference.way === run.way),
    )
  })
  print(`| ${name} | ${cells.join(' | ')} |`)
  print('')
  for (const { difference, expected } of explained) {
    const { way, test, plain, here, message } = difference
    print(`${expected === undefined ? 'UNEXPECTED' : 'expected'}  ${way}: ${test}: ${plain} → ${here}`)
    if (expected !== undefined) print(`    ${expected.reason}`)
    else if (message !== undefined) print(`    ${message.split('\n').slice(0, 6).join('\n    ')}`)
  }
  for (const { way, notRun } of comparisons) {
    for (const missingIn of ['here', 'plain'] as const) {
      const tests = notRun.filter((one) => one.missingIn === missingIn).map(({ test }) => test)
      if (tests.length === 0) continue
      print(
        `not run${missingIn === 'plain' ? ' plain' : ''}  ${way}: ${tests.length}, the first: ${tests.slice(0, 5).join('; ')}`,
      )
    }
  }
  const open = explained.filter(({ expected }) => expected === undefined).length
  const notRun = comparisons.reduce((sum, comparison) => sum + comparison.notRun.length, 0)
  print(`${explained.length} differences, ${open} of them unexpected; ${notRun} tests not run on one side`)
}

/** Entries of the list that explain nothing in any run, or match more tests than allowed. */
export function printEntries(suite: string, comparisons: readonly Comparison[], list: readonly Expected[]): void {
  for (const { suite: of, ways, tests, atMost } of list) {
    if (of !== suite) continue
    for (const { way, differences } of comparisons.filter((one) => ways.includes(one.way))) {
      const count = differences.filter(({ test }) => tests.test(test)).length
      if (count > atMost)
        print(`${way}: ${tests} matches ${count} differences and may explain ${atMost}: it explains none`)
    }
    const isIdle = comparisons.every(({ differences }) => !differences.some(({ test }) => tests.test(test)))
    if (isIdle) print(`nothing differs that ${tests} would explain`)
  }
}
