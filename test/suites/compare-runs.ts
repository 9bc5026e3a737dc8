import type { RunResults, Way } from './suite.ts'

/** A test that ends otherwise than in the plain run. */
export interface Difference {
  readonly test: string
  readonly way: Way
  readonly plain: string
  readonly here: string
  readonly message: string | undefined
}

/** A difference that is known, and why it is right. */
export interface Expected {
  /** The suite's name. */
  readonly suite: string
  readonly ways: readonly Way[]
  /** Matches the names of the tests. */
  readonly tests: RegExp
  readonly reason: string
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

/** The tests that end otherwise than in the plain run, also those that one of the two runs never came to. */
export function differences(way: Way, plain: RunResults, here: RunResults): Difference[] {
  const found: Difference[] = []
  for (const test of new Set([...plain.keys(), ...here.keys()])) {
    const before = plain.get(test)?.outcome ?? 'not run'
    const now = here.get(test)?.outcome ?? 'not run'
    if (before !== now) found.push({ test, way, plain: before, here: now, message: here.get(test)?.message })
  }
  return found
}

/** Each difference with the entry that explains it. */
export function explain(
  suite: string,
  found: readonly Difference[],
  list: readonly Expected[],
): { readonly difference: Difference; readonly expected: Expected | undefined }[] {
  return found.map((difference) => ({
    difference,
    expected: list.find(
      (entry) => entry.suite === suite && entry.ways.includes(difference.way) && entry.tests.test(difference.test),
    ),
  }))
}
