import type { HistogramPoint, MetricFamily, MetricLabels, MetricPoint } from './metric-family.ts'

/** The source of the metrics and their time span. */
export interface OtlpHead {
  readonly resource: Readonly<Record<string, string>>
  /** When the counters started. */
  readonly startTimeMs: number
  readonly timeMs: number
}

/** An OTLP attribute; all of ours are strings. */
export interface OtlpAttribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}

interface OtlpPoint {
  readonly attributes: readonly OtlpAttribute[]
  readonly startTimeUnixNano?: string
  readonly timeUnixNano: string
}

export interface OtlpNumber extends OtlpPoint {
  readonly asDouble: number
}

export interface OtlpHistogram extends OtlpPoint {
  readonly count: string
  readonly sum: number
  readonly bucketCounts: readonly string[]
  readonly explicitBounds: readonly number[]
}

/** One metric of a request: exactly one of the three is present. */
export interface OtlpMetric {
  readonly name: string
  readonly description: string
  readonly gauge?: { readonly dataPoints: readonly OtlpNumber[] }
  readonly sum?: {
    readonly aggregationTemporality: 2
    readonly isMonotonic: true
    readonly dataPoints: readonly OtlpNumber[]
  }
  readonly histogram?: { readonly aggregationTemporality: 2; readonly dataPoints: readonly OtlpHistogram[] }
}

/** `ExportMetricsServiceRequest` in OTLP's JSON form. */
export interface OtlpRequest {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeMetrics: readonly {
      readonly scope: { readonly name: string }
      readonly metrics: readonly OtlpMetric[]
    }[]
  }[]
}

const cumulative = 2

/**
 * Converts families to an OTLP request: counters become monotonic sums since `startTimeMs`, histograms cumulative ones
 * with explicit bounds. Names stay those of `/metrics`, and no unit is sent: a receiver that generates Prometheus names
 * would append the unit to a name that already ends with it. 64-bit numbers are strings, as in protobuf's JSON form.
 * Values that are not numbers (a percentile of nothing) have no form there and are left out, as are families without
 * points.
 */
export function otlpRequest(
  families: readonly MetricFamily[],
  { resource, startTimeMs, timeMs }: OtlpHead,
): OtlpRequest {
  const startTimeUnixNano = nanoseconds(startTimeMs)
  const timeUnixNano = nanoseconds(timeMs)
  const numbers = (points: readonly MetricPoint[], start: { startTimeUnixNano?: string }): OtlpNumber[] =>
    points
      .filter(({ value }) => Number.isFinite(value))
      .map(({ labels, value }) => ({ attributes: attributesOf(labels), ...start, timeUnixNano, asDouble: value }))
  const histogram = ({ labels, count, sum, bounds, bucketCounts }: HistogramPoint): OtlpHistogram => ({
    attributes: attributesOf(labels),
    startTimeUnixNano,
    timeUnixNano,
    count: String(count),
    sum,
    bucketCounts: bucketCounts.map(String),
    explicitBounds: bounds,
  })
  const metrics: OtlpMetric[] = []
  for (const family of families) {
    const { name, help: description } = family
    if (family.kind === 'histogram') {
      const dataPoints = family.points.map(histogram)
      if (dataPoints.length > 0)
        metrics.push({ name, description, histogram: { aggregationTemporality: cumulative, dataPoints } })
      continue
    }
    const dataPoints = numbers(family.points, family.kind === 'counter' ? { startTimeUnixNano } : {})
    if (dataPoints.length === 0) continue
    if (family.kind === 'gauge') metrics.push({ name, description, gauge: { dataPoints } })
    else metrics.push({ name, description, sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints } })
  }
  return {
    resourceMetrics: [
      { resource: { attributes: attributesOf(resource) }, scopeMetrics: [{ scope: { name: 'firebreak' }, metrics }] },
    ],
  }
}

/** Labels as OTLP attributes. */
export function attributesOf(labels: MetricLabels): OtlpAttribute[] {
  return Object.entries(labels).map(([key, stringValue]) => ({ key, value: { stringValue } }))
}

/** Milliseconds since 1970, possibly fractional, as whole nanoseconds. */
export function nanoseconds(ms: number): string {
  const whole = Math.floor(ms)
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.floor((ms - whole) * 1e6)))
}
