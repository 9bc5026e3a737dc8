import type { HistogramPoint, MetricFamily, MetricPoint } from '@firebreak/core'
import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client'

type RegistryMetric = MetricObjectWithValues<MetricValue<string> & { readonly metricName?: string }>

/** What a registry of `prom-client` holds at this moment, as families. */
export async function registryFamilies(registry: Registry): Promise<MetricFamily[]> {
  const metrics = (await registry.getMetricsAsJSON()) as unknown as RegistryMetric[]
  return metrics.map((metric): MetricFamily => {
    const { name, help, values } = metric
    const kind = metric.type as unknown as string
    if (kind === 'histogram') return { kind, name, help, points: histogramPoints(name, values) }
    return { kind: kind === 'counter' ? 'counter' : 'gauge', name, help, points: values.map(pointOf) }
  })
}

function pointOf({ labels, value }: MetricValue<string>): MetricPoint {
  return { labels: textLabels(labels), value }
}

/** The registry has a line for each bucket, `le` among its labels and smaller ones counted in; the sum and the count. */
function histogramPoints(name: string, values: RegistryMetric['values']): HistogramPoint[] {
  const points = new Map<string, { bounds: number[]; sums: number[]; count: number; sum: number }>()
  for (const { labels: given, value, metricName } of values) {
    const { le, ...labels } = textLabels(given)
    const id = JSON.stringify(labels)
    const point = points.get(id) ?? { bounds: [], sums: [], count: 0, sum: 0 }
    points.set(id, point)
    if (metricName === `${name}_sum`) point.sum = value
    else if (metricName === `${name}_count`) point.count = value
    else if (le !== undefined && le !== '+Inf') {
      point.bounds.push(Number(le))
      point.sums.push(value)
    }
  }
  return [...points].map(([id, { bounds, sums, count, sum }]) => ({
    labels: JSON.parse(id) as Record<string, string>,
    count,
    sum,
    bounds,
    bucketCounts: [...sums, count].map((upTo, index) => upTo - (sums[index - 1] ?? 0)),
  }))
}

function textLabels(labels: Partial<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))
}
