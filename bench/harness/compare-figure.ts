import type { Figure } from './bench.ts'

/** How a figure changed between two trees; positive shares are worse. */
export interface FigureChange {
  readonly worseBy: number
  /** The ends of the 95 % interval of `worseBy`. */
  readonly low: number
  readonly high: number
  /** The interval lies wholly beyond 3 % worse. */
  readonly isWorse: boolean
}

/** Beyond which share of the base's value a figure counts as worse. */
const tolerated = 0.03

/** Student's t for a 95 % interval by degrees of freedom; the normal distribution's beyond the table. */
const studentT = [
  12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
]

/**
 * Compares paired runs by the mean of the logarithms of their ratios: a pair shares the machine's mood, and a ratio of
 * two is as far from 1 as a half.
 */
export function compareFigure(ours: readonly number[], base: readonly number[], lowerIsBetter: boolean): FigureChange {
  const logs: number[] = []
  ours.forEach((value, index) => {
    const [worse, better] = lowerIsBetter ? [value, base[index]!] : [base[index]!, value]
    if (worse > 0 && better > 0) logs.push(Math.log(worse / better))
  })
  if (logs.length < 2) return { worseBy: 0, low: 0, high: 0, isWorse: false }
  const mean = logs.reduce((sum, value) => sum + value, 0) / logs.length
  const variance = logs.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (logs.length - 1)
  const reach = (studentT[logs.length - 2] ?? 1.96) * Math.sqrt(variance / logs.length)
  const [worseBy, low, high] = [mean, mean - reach, mean + reach].map((log) => Math.expm1(log)) as [
    number,
    number,
    number,
  ]
  return { worseBy, low, high, isWorse: low > tolerated }
}

/** Whether less of a figure is better: times, sizes, costs and faults, as their ids and units say. */
export function isLowerBetter(figure: Figure): boolean {
  if (/-per-(cpu-)?second$/.test(figure.id)) return false
  // How many times shorter than the rival's a pause is.
  if (figure.id.endsWith('pause-vs-map')) return false
  const costs =
    /(^|-)(cpu|p50|p99|max|cost|pause|stall|mb|seconds|bytes|duplicates|seen|needless|alarms|rows|handoff|returning)(-|$)/
  return costs.test(figure.id) || ('unit' in figure && /^(ms|µs|s|bytes|MB|rows|keys)\b/.test(figure.unit))
}
