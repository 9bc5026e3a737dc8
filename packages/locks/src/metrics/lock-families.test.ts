import { prometheusText } from '@firebreak/core/metrics'
import { expect, test } from 'vitest'
import { lockFamilies } from './lock-families.ts'
import { LockMetrics } from './lock-metrics.ts'

test('metrics of locks have the form of OpenTelemetry and Prometheus', () => {
  const metrics = new LockMetrics()
  metrics.acquired = 5
  metrics.lost.taken = 2
  for (const ms of [0.5, 3, 90_000]) metrics.hold.record(ms)
  const text = prometheusText(lockFamilies(metrics.snapshot({ renewals: 7, renewalErrors: 1 })))
  for (const line of [
    'firebreak_locks_acquired_total 5',
    'firebreak_locks_lost_total{reason="expired"} 0',
    'firebreak_locks_lost_total{reason="taken"} 2',
    'firebreak_locks_renewals_total 7',
    'firebreak_locks_renewal_errors_total 1',
    'firebreak_locks_hold_ms_bucket{le="1"} 1',
    'firebreak_locks_hold_ms_bucket{le="5"} 2',
    'firebreak_locks_hold_ms_bucket{le="30000"} 2',
    'firebreak_locks_hold_ms_bucket{le="+Inf"} 3',
    'firebreak_locks_hold_ms_sum 90003.5',
    'firebreak_locks_wait_ms_count 0',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
})
