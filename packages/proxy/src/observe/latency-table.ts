/**
 * How long requests took, by command: a histogram each, in steps of a quarter of a power of two from 8 µs to two
 * minutes, so that a quantile is known to a fifth of itself whatever its size. A command that never came has none.
 */
const steps = 4
const smallestUs = 8
const bucketCount = 24 * steps

/** What is known about one command's times. */
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

  /** The commands that came, each with its summary. */
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
  const us = elapsedMs * 1000
  if (us <= smallestUs) return 0
  return Math.min(bucketCount - 1, Math.ceil(Math.log2(us / smallestUs) * steps))
}

function quantileOf({ buckets, count }: Histogram, share: number): number {
  let left = Math.ceil(count * share)
  for (let index = 0; index < bucketCount; index++) {
    left -= buckets[index]!
    if (left <= 0) return (smallestUs * 2 ** (index / steps)) / 1000
  }
  return Number.POSITIVE_INFINITY
}
