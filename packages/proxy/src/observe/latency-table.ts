/**
 * Latency by command: a histogram each, with every power of two from 8 µs to two minutes in eight equal steps, so that
 * a quantile is known to an eighth of itself whatever its size. A command that was never sent has none.
 */
const steps = 8
const smallestUs = 8
const bucketCount = 24 * steps
const maxUs = 2 ** 31 - 1

/** Bucket bounds where whole powers are enough, for collectors of histograms; the last bucket has none. */
export const latencyBoundsMs: readonly number[] = Array.from(
  { length: bucketCount / steps },
  (_, power) => (smallestUs * 2 ** power) / 1000,
)

/** One command's times by `latencyBoundsMs`. */
export interface LatencyHistogram {
  readonly count: number
  readonly sumMs: number
  readonly bucketCounts: readonly number[]
}

/** A summary of one command's times. */
export interface LatencySummary {
  readonly count: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

class Histogram {
  readonly buckets = new Uint32Array(bucketCount)
  count = 0
  sumMs = 0
  maxMs = 0
}

/** The times of one node, by command id. */
export class LatencyTable {
  readonly #histograms: (Histogram | undefined)[] = []

  record(commandId: number, elapsedMs: number): void {
    const histogram = (this.#histograms[commandId] ??= new Histogram())
    histogram.count++
    histogram.sumMs += elapsedMs
    if (elapsedMs > histogram.maxMs) histogram.maxMs = elapsedMs
    histogram.buckets[bucketOf(elapsedMs)]!++
  }

  /** The commands that were sent, each with its histogram. */
  *histograms(): Generator<[commandId: number, histogram: LatencyHistogram]> {
    for (const [commandId, histogram] of this.#histograms.entries()) {
      if (histogram === undefined) continue
      const { count, sumMs, buckets } = histogram
      const bucketCounts = new Array<number>(latencyBoundsMs.length + 1).fill(0)
      for (const [index, inBucket] of buckets.entries()) bucketCounts[Math.ceil(index / steps)]! += inBucket
      yield [commandId, { count, sumMs, bucketCounts }]
    }
  }

  /** The commands that were sent, each with its summary. */
  *summaries(): Generator<[commandId: number, summary: LatencySummary]> {
    for (const [commandId, histogram] of this.#histograms.entries()) {
      if (histogram === undefined) continue
      const { count, sumMs, maxMs } = histogram
      const quantile = (share: number) => Math.min(maxMs, quantileOf(histogram, share))
      yield [commandId, { count, meanMs: sumMs / count, p50Ms: quantile(0.5), p99Ms: quantile(0.99), maxMs }]
    }
  }
}

function bucketOf(elapsedMs: number): number {
  const us = Math.min(maxUs, Math.floor(elapsedMs * 1000))
  if (us < smallestUs) return 0
  // From 8 µs on, the four highest bits give the power and the step.
  const power = 28 - Math.clz32(us)
  return Math.min(bucketCount - 1, power * steps + ((us >>> power) & (steps - 1)) + 1)
}

/** The upper end of a bucket. */
function endOf(bucket: number): number {
  if (bucket === 0) return smallestUs
  const power = Math.floor((bucket - 1) / steps)
  return smallestUs * 2 ** power * (1 + (((bucket - 1) % steps) + 1) / steps)
}

function quantileOf({ buckets, count }: Histogram, share: number): number {
  let left = Math.ceil(count * share)
  for (let index = 0; index < bucketCount; index++) {
    left -= buckets[index]!
    if (left <= 0) return endOf(index) / 1000
  }
  return Number.POSITIVE_INFINITY
}
