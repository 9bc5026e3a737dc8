import type { LimiterCounts } from './answer.ts'

/** The counts of limiters in Prometheus' text form, one series for each limit and outcome; keys are never labels. */
export function limiterMetrics(limiters: readonly { readonly name: string; readonly counts: LimiterCounts }[]): string {
  const lines = [
    '# HELP firebreak_limit_calls_total Calls of a limit by outcome.',
    '# TYPE firebreak_limit_calls_total counter',
  ]
  for (const { name, counts } of limiters) {
    const label = name.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
    for (const [outcome, count] of Object.entries(counts)) {
      lines.push(`firebreak_limit_calls_total{limit="${label}",outcome="${outcome}"} ${count}`)
    }
  }
  return `${lines.join('\n')}\n`
}
