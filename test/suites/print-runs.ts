import { countsOf, type Difference, type Expected } from './compare-runs.ts'
import type { SuiteRun } from './run-suite.ts'

type Explained = readonly { readonly difference: Difference; readonly expected: Expected | undefined }[]

const print = (line: string) => process.stdout.write(`${line}\n`)

/** One line as soon as a run has ended. */
export function printRun({ way, results, facts, seconds, isCutOff }: SuiteRun): void {
  const { passed, failed, skipped } = countsOf(results)
  const hot =
    facts === undefined
      ? ''
      : `; ${facts.clients} clients protected, ${facts.refused} refused, ${facts.keys} keys hot, ${facts.loads} loads, ${facts.localHits} reads from memory, ${facts.copyReads} from copies`
  const end = isCutOff ? ' (cut off)' : ''
  print(`${way}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds.toFixed(0)} s${end}${hot}`)
}

/** A row for the guide, then every difference with its reason. */
export function printTable(name: string, runs: readonly SuiteRun[], explained: Explained): void {
  print('')
  print(`| suite | ${runs.map(({ way }) => way).join(' | ')} |`)
  print(`|${'---|'.repeat(runs.length + 1)}`)
  const cells = runs.map(({ way, results }) => {
    const { passed, failed } = countsOf(results)
    const count = explained.filter(({ difference }) => difference.way === way).length
    return `${passed} of ${passed + failed}${way === 'plain' ? '' : `, ${count} differ`}`
  })
  print(`| ${name} | ${cells.join(' | ')} |`)
  print('')
  for (const { difference, expected } of explained) {
    const { way, test, plain, here, message } = difference
    print(`${expected === undefined ? 'UNEXPECTED' : 'expected'}  ${way}: ${test}: ${plain} → ${here}`)
    if (expected !== undefined) print(`    ${expected.reason}`)
    else if (message !== undefined) print(`    ${message.split('\n').slice(0, 6).join('\n    ')}`)
  }
  const open = explained.filter(({ expected }) => expected === undefined).length
  print(`${explained.length} differences, ${open} of them unexpected`)
}
