import type { HistogramPoint, MetricFamily, MetricLabels } from '@firebreak/core/metrics'
import { bucketBoundsMs, type DurationSnapshot, type LockMetricsSnapshot } from './lock-metrics.ts'

/** Metrics of a process' locks, for an OpenTelemetry meter or Prometheus; lock names are never labels. */
export function lockFamilies(metrics: LockMetricsSnapshot): MetricFamily[] {
  const { acquired, contended, handedOver, refused, released, lost, renewals, renewalErrors, wait, hold } = metrics
  return [
    counter('acquired', 'First acquisitions', [[{}, acquired]]),
    counter('contended', 'First acquisitions that had to wait', [[{}, contended]]),
    counter('handed_over', 'First acquisitions handed over within the process', [[{}, handedOver]]),
    counter('refused', 'Requests that did not get the lock', [[{}, refused]]),
    counter('released', 'Locks released', [[{}, released]]),
    counter(
      'lost',
      'Locks lost while they were held, by reason',
      Object.entries(lost).map(([reason, count]) => [{ reason }, count]),
    ),
    counter('renewals', 'Leases renewed', [[{}, renewals]]),
    counter('renewal_errors', 'Failed renewals', [[{}, renewalErrors]]),
    histogram('wait', 'Time from request to acquisition, for contended locks', wait),
    histogram('hold', 'Time from acquisition to release or loss', hold),
  ]
}

function counter(name: string, help: string, points: readonly (readonly [MetricLabels, number])[]): MetricFamily {
  return {
    kind: 'counter',
    name: `firebreak_locks_${name}_total`,
    help,
    points: points.map(([labels, value]) => ({ labels, value })),
  }
}

function histogram(name: string, help: string, { count, sumMs, buckets }: DurationSnapshot): MetricFamily {
  const point: HistogramPoint = { labels: {}, count, sum: sumMs, bounds: bucketBoundsMs, bucketCounts: buckets }
  return { kind: 'histogram', name: `firebreak_locks_${name}_ms`, help, points: [point] }
}
