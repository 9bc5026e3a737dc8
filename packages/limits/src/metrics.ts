import { type MetricFamily, prometheusText } from '@firebreak/core/metrics'
import type { LimiterCounts } from './answer.ts'

/** The part of a limiter that its metrics need. */
export interface CountedLimiter {
  readonly name: string
  readonly counts: LimiterCounts
}

/** The counts of limiters, one series for each limit and outcome; keys are never labels. */
export function limiterFamilies(limiters: readonly CountedLimiter[]): MetricFamily[] {
  return [
    {
      kind: 'counter',
      name: 'firebreak_limit_calls_total',
      help: 'Calls of a limit by outcome.',
      points: limiters.flatMap(({ name: limit, counts }) =>
        Object.entries(counts).map(([outcome, value]) => ({ labels: { limit, outcome }, value: value as number })),
      ),
    },
  ]
}

/** The same in Prometheus' text form. */
export function limiterMetrics(limiters: readonly CountedLimiter[]): string {
  return prometheusText(limiterFamilies(limiters))
}
