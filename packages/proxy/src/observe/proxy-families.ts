import type { HistogramPoint, MetricFamily, MetricPoint } from '@firebreak/core/metrics'
import { proxyCommands } from '../commands/proxy-command.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { latencyBoundsMs } from './latency-table.ts'
import type { NodeHealth } from './node-health.ts'

/** The sources of one thread's metrics. */
export interface ProxyFigures {
  readonly clients: { readonly size: number }
  readonly counters: {
    readonly connections: number
    readonly refused: number
    readonly slowReaders: number
    readonly idleClosed: number
    readonly strangersClosed: number
    readonly wrongPasswords: number
  }
  readonly slowLog: { readonly total: number }
  readonly isFull: boolean
  readonly isIsolated: boolean
  readonly limited: Readonly<Record<string, number>> | undefined
  readonly nodes: readonly UpstreamNode[]
  /** Those that requests currently go to. */
  readonly serving: readonly UpstreamNode[]
}

/** The gauge that tells which Redis is up; readiness uses it too. */
export const upstreamUpName = 'firebreak_proxy_upstream_up'

/** One thread's metrics: the figures of INFO, the health of each Redis, and request latencies. */
export function proxyFamilies(of: ProxyFigures): MetricFamily[] {
  const { clients, counters, slowLog, isFull, isIsolated, limited = {}, nodes, serving } = of
  const one = (value: number): MetricPoint[] => [{ labels: {}, value }]
  const sum = (part: (node: UpstreamNode) => number) => nodes.reduce((total, node) => total + part(node), 0)
  const connections = {
    shared: sum((node) => node.sharedCount),
    owned: sum((node) => node.ownedCount),
    idle: sum((node) => node.idleCount),
  }
  return [
    gauge('clients', 'Connected clients', one(clients.size)),
    counter('connections', 'Clients that have connected since the start', one(counters.connections)),
    counter('connections_refused', 'Clients refused because of maxClients', one(counters.refused)),
    counter('slow_readers_closed', 'Clients closed because they did not read their replies', one(counters.slowReaders)),
    counter('idle_closed', 'Clients closed because they were idle', one(counters.idleClosed)),
    counter('strangers_closed', 'Clients closed because they had not logged in', one(counters.strangersClosed)),
    counter('wrong_passwords', 'Wrong passwords that clients showed', one(counters.wrongPasswords)),
    counter('slow_requests', 'Requests slower than slowLogMs', one(slowLog.total)),
    gauge('upstream_connections', 'Connections to Redis by use', by('use', connections)),
    {
      kind: 'gauge',
      name: upstreamUpName,
      help: '1 if a Redis in use answers',
      points: eachOf(serving, ({ isUp }) => (isUp ? 1 : 0)),
    },
    counter(
      'upstream_lost',
      'Connections to Redis that were lost or failed',
      eachOf(nodes, (of) => of.lostCount),
    ),
    counter('error_replies', 'Error replies from Redis, by their first word', errorReplies(nodes)),
    gauge('output_full', '1 while clients have too much unread output', one(isFull ? 1 : 0)),
    gauge('paused', '1 while a CLIENT PAUSE may hold up connections', one(isIsolated ? 1 : 0)),
    counter('limited', 'Requests that a limit refused, delayed or answered with stale data', by('outcome', limited)),
    {
      kind: 'histogram',
      name: 'firebreak_proxy_request_ms',
      help: 'Time from a request to the reply from Redis, by command and node',
      points: latencies(nodes),
    },
  ]
}

/** The resources that the process uses, under the same names as in the hub's `/metrics`. */
export function processFamilies(): MetricFamily[] {
  const { user, system } = process.cpuUsage()
  return [
    {
      kind: 'counter',
      name: 'process_cpu_seconds_total',
      help: 'CPU time of the process in seconds',
      points: [{ labels: {}, value: (user + system) / 1e6 }],
    },
    {
      kind: 'gauge',
      name: 'process_resident_memory_bytes',
      help: 'Resident memory in bytes',
      points: [{ labels: {}, value: process.memoryUsage.rss() }],
    },
  ]
}

/** The families of all threads as one list, each point labelled with its thread's number. */
export function mergeThreads(threads: readonly (readonly MetricFamily[])[]): MetricFamily[] {
  const merged = new Map<string, MetricFamily>()
  for (const [thread, families] of threads.entries()) {
    for (const family of families) {
      const own = { thread: String(thread) }
      const points = family.points.map((point) => ({ ...point, labels: { ...point.labels, ...own } }))
      const before = merged.get(family.name)?.points ?? []
      merged.set(family.name, { ...family, points: [...before, ...points] } as MetricFamily)
    }
  }
  return [...merged.values()]
}

function latencies(nodes: readonly UpstreamNode[]): HistogramPoint[] {
  return nodes.flatMap(({ address: node, latency }) =>
    [...latency.histograms()].map(([commandId, { count, sumMs: sum, bucketCounts }]) => ({
      labels: { command: proxyCommands[commandId]!.name, node },
      bounds: latencyBoundsMs,
      count,
      sum,
      bucketCounts,
    })),
  )
}

function eachOf(nodes: readonly UpstreamNode[], value: (health: NodeHealth) => number): MetricPoint[] {
  return nodes.map(({ address: node, health }) => ({ labels: { node }, value: value(health) }))
}

function errorReplies(nodes: readonly UpstreamNode[]): MetricPoint[] {
  return nodes.flatMap(({ address: node, health }) =>
    [...health.errorCounts].map(([code, value]) => ({ labels: { node, code }, value })),
  )
}

function by(label: string, counts: Readonly<Record<string, number>>): MetricPoint[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}

function counter(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'counter', name: `firebreak_proxy_${name}_total`, help, points }
}

function gauge(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'gauge', name: `firebreak_proxy_${name}`, help, points }
}
