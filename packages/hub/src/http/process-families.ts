import type { MetricFamily } from '@firebreak/core/metrics'

const startedAt = performance.timeOrigin / 1000

/** The resources that the process uses, under the names of Prometheus' own clients. */
export function processFamilies(): MetricFamily[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const busyMs = performance.eventLoopUtilization().active
  const figures: readonly ['counter' | 'gauge', name: string, help: string, value: number][] = [
    ['counter', 'process_cpu_seconds_total', 'CPU time of the process in seconds', (user + system) / 1e6],
    ['gauge', 'process_resident_memory_bytes', 'Resident memory of the process', rss],
    ['gauge', 'process_start_time_seconds', 'Start time of the process, since 1970', startedAt],
    ['gauge', 'nodejs_heap_size_used_bytes', 'JavaScript heap in use', heapUsed],
    ['gauge', 'nodejs_heap_size_total_bytes', 'JavaScript heap', heapTotal],
    ['gauge', 'nodejs_external_memory_bytes', 'Memory of buffers outside the heap', external],
    ['counter', 'nodejs_eventloop_active_seconds_total', 'Time that the event loop was busy', busyMs / 1000],
  ]
  return figures.map(([kind, name, help, value]) => ({ kind, name, help, points: [{ labels: {}, value }] }))
}
