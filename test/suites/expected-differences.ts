import type { Expected } from './compare-runs.ts'

/** Tests of known suites that may end otherwise under Firebreak, and why. What is not here is a fault. */
export const expectedDifferences: readonly Expected[] = []
