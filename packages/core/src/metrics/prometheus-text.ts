import type { HistogramPoint, MetricFamily, MetricLabels } from './metric-family.ts'

/** Renders families in Prometheus' text format, version 0.0.4. */
export function prometheusText(families: readonly MetricFamily[]): string {
  const lines: string[] = []
  for (const family of families) {
    const { name, help, kind } = family
    lines.push(`# HELP ${name} ${escapeText(help)}`, `# TYPE ${name} ${kind}`)
    if (family.kind === 'histogram') for (const point of family.points) lines.push(...histogramLines(name, point))
    else for (const { labels, value } of family.points) lines.push(`${name}${labelText(labels)} ${numberText(value)}`)
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

/** One line for each cumulative bucket, then the sum and the count. */
function histogramLines(name: string, { labels, bounds, bucketCounts, sum, count }: HistogramPoint): string[] {
  let upTo = 0
  const buckets = bounds.map((bound, index) => {
    upTo += bucketCounts[index]!
    return `${name}_bucket${labelText({ ...labels, le: String(bound) })} ${upTo}`
  })
  return [
    ...buckets,
    `${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${labelText(labels)} ${numberText(sum)}`,
    `${name}_count${labelText(labels)} ${count}`,
  ]
}

function labelText(labels: MetricLabels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeText(value).replace(/"/g, '\\"')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escapeText(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
