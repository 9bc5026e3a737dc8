/** Distinguishes the points of a family. Users' keys are never among the values. */
export type MetricLabels = Readonly<Record<string, string>>

/** A number under its labels. */
export interface MetricPoint {
  readonly labels: MetricLabels
  readonly value: number
}

/** A distribution under its labels, counted since the family started. */
export interface HistogramPoint {
  readonly labels: MetricLabels
  readonly count: number
  readonly sum: number
  /** Upper bounds of the buckets, ascending; one more bucket has no bound. */
  readonly bounds: readonly number[]
  /** How many values fell into each bucket, not cumulative: one more than `bounds`. */
  readonly bucketCounts: readonly number[]
}

/**
 * One metric of a process with all its labels, as exported by `/metrics`, OTLP and an application's own meter: a
 * counter only grows, a gauge goes both ways. A family exists from the start, with no points while nothing is known
 * yet.
 */
export type MetricFamily =
  | {
      readonly kind: 'counter' | 'gauge'
      readonly name: string
      readonly help: string
      readonly points: readonly MetricPoint[]
    }
  | {
      readonly kind: 'histogram'
      readonly name: string
      readonly help: string
      readonly points: readonly HistogramPoint[]
    }
