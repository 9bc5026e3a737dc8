import type { SuiteRun } from './run-suite.ts'
import type { RunResults, Way } from './suite.ts'

/** A test that ends differently from the plain run, or a failure that the plain run does not have at all. */
export interface Difference {
  readonly test: string
  readonly way: Way
  readonly plain: string
  readonly here: string
  readonly message: string | undefined
}

/** A test that only one of two runs reached: nothing is known of it. */
export interface NotRun {
  readonly test: string
  readonly way: Way
  /** The run that did not reach it. */
  readonly missingIn: 'plain' | 'here'
}

/** One run beside the plain one. */
export interface Comparison {
  readonly way: Way
  readonly differences: readonly Difference[]
  readonly notRun: readonly NotRun[]
}

/** Differences that are known, and why they are right. */
export interface Expected {
  /** The suite's name. */
  readonly suite: string
  readonly ways: readonly Way[]
  /** Matches the names of the tests, from their beginning. */
  readonly tests: RegExp
  /** How many tests of one run it may explain. If more differ, it explains none of them. */
  readonly atMost: number
  readonly reason: string
}

/** A difference with the entry that explains it. */
export interface Explained {
  readonly difference: Difference
  readonly expected: Expected | undefined
}

export interface RunCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export function countsOf(results: RunResults): RunCounts {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { outcome } of results.values()) counts[outcome]++
  return counts
}

/** Compares the tests that a run shares with the plain one; lists tests that only one of them reached separately. */
export function compareRuns(plain: Pick<SuiteRun, 'results' | 'end'>, here: SuiteRun): Comparison {
  const { way } = here
  const differences: Difference[] = []
  const notRun: NotRun[] = []
  for (const test of new Set([...plain.results.keys(), ...here.results.keys()])) {
    const before = plain.results.get(test)
    const now = here.results.get(test)
    if (now === undefined) notRun.push({ test, way, missingIn: 'here' })
    else if (before !== undefined) {
      if (before.outcome !== now.outcome)
        differences.push({ test, way, plain: before.outcome, here: now.outcome, message: now.message })
    } else if (now.outcome === 'failed' && plain.end === 'complete') {
      // A failure between tests has its own name; a plain run that completed did not have it.
      differences.push({ test, way, plain: 'no such failure', here: 'failed', message: now.message })
    } else notRun.push({ test, way, missingIn: 'plain' })
  }
  return { way, differences, notRun }
}

/** Each difference of a run with the entry that explains it. */
export function explain(
  suite: string,
  { way, differences }: Comparison,
  list: readonly Expected[],
): readonly Explained[] {
  const entries = list
    .filter((entry) => entry.suite === suite && entry.ways.includes(way))
    .filter(({ tests, atMost }) => differences.filter(({ test }) => tests.test(test)).length <= atMost)
  return differences.map((difference) => ({
    difference,
    expected: entries.find(({ tests }) => tests.test(difference.test)),
  }))
}

/**
 * The exit code of all runs together: 1 where a difference is not explained or a run has no test to show, 3 where nothing
 * differs but a run did not come to every test.
 */
export function exitCodeOf(
  runs: readonly SuiteRun[],
  comparisons: readonly Comparison[],
  explained: readonly Explained[],
): 0 | 1 | 3 {
  if (runs.some(({ results }) => results.size === 0)) return 1
  if (explained.some(({ expected }) => expected === undefined)) return 1
  const isWhole = runs.every(({ end }) => end === 'complete') && comparisons.every(({ notRun }) => notRun.length === 0)
  return isWhole ? 0 : 3
}
