import type { HistogramPoint, MetricFamily, MetricPoint } from '@firebreak/core/metrics'
import { proxyCommands } from '../commands/proxy-command.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { latencyBoundsMs } from './latency-table.ts'
import type { NodeHealth } from './node-health.ts'

/** What the figures of one thread are read from. */
export interface ProxyFigures {
  readonly clients: { readonly size: number }
  readonly counters: {
    readonly connections: number
    readonly refused: number
    readonly slowReaders: number
    readonly idleClosed: number
  }
  readonly slowLog: { readonly total: number }
  readonly isFull: boolean
  readonly isIsolated: boolean
  readonly limited: Readonly<Record<string, number>> | undefined
  readonly nodes: readonly UpstreamNode[]
  /** Those of them that requests go to now. */
  readonly serving: readonly UpstreamNode[]
}

/** The gauge of who is up, which readiness is read from as well. */
export const upstreamUpName = 'firebreak_proxy_upstream_up'

/** What one thread of a proxy did and does: the figures of INFO, how each Redis fares, and how long requests took there. */
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
    gauge('clients', 'Clients that are connected', one(clients.size)),
    counter('connections', 'Clients that ever connected', one(counters.connections)),
    counter('connections_refused', 'Clients beyond maxClients', one(counters.refused)),
    counter('slow_readers_closed', 'Clients closed because they did not read', one(counters.slowReaders)),
    counter('idle_closed', 'Clients closed because they were silent', one(counters.idleClosed)),
    counter('slow_requests', 'Requests slower than slowLogMs', one(slowLog.total)),
    gauge('upstream_connections', 'Connections to Redis by use', by('use', connections)),
    {
      kind: 'gauge',
      name: upstreamUpName,
      help: '1 where a Redis that requests go to answers',
      points: eachOf(serving, ({ isUp }) => (isUp ? 1 : 0)),
    },
    counter(
      'upstream_lost',
      'Connections to Redis that were lost or not made',
      eachOf(nodes, (of) => of.lostCount),
    ),
    counter('error_replies', 'Replies of Redis that were errors, by their first word', errorReplies(nodes)),
    gauge('output_full', '1 while clients leave too much unread', one(isFull ? 1 : 0)),
    gauge('paused', '1 while a CLIENT PAUSE may hold up connections', one(isIsolated ? 1 : 0)),
    counter('limited', 'Requests that a limit refused, made wait or answered stale', by('outcome', limited)),
    {
      kind: 'histogram',
      name: 'firebreak_proxy_request_ms',
      help: 'From a request to its reply by Redis, by command and node',
      points: latencies(nodes),
    },
  ]
}

/** What the process as a whole uses, under the names that the hub's `/metrics` has too. */
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

/** The families of all threads as one list, each point with the number of its thread. */
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
