/** What tells the points of a family apart. Keys of users are never among the values. */
export type MetricLabels = Readonly<Record<string, string>>

/** A number under its labels. */
export interface MetricPoint {
  readonly labels: MetricLabels
  readonly value: number
}

/** A distribution under its labels, counted since the family's start. */
export interface HistogramPoint {
  readonly labels: MetricLabels
  readonly count: number
  readonly sum: number
  /** Upper ends of the buckets, rising; one more bucket has none. */
  readonly bounds: readonly number[]
  /** How many fell into each bucket, not added up: one more than `bounds`. */
  readonly bucketCounts: readonly number[]
}

/**
 * One figure of a process with all its labels, as `/metrics`, OTLP and an application's own meter tell it: a counter
 * only grows, a gauge goes both ways. A family is there from the start, with no points where nothing is known yet.
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
