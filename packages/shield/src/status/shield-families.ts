import { largestGroups } from '@firebreak/core'
import type { MetricFamily, MetricPoint } from '@firebreak/core/metrics'
import type { ClusterShield } from '../cluster-shield.ts'
import type { Shield } from '../shield.ts'
import { type TotalName, totalHelp } from './tally.ts'

/** The source of the metrics. */
export interface ShieldSource {
  readonly shield: Pick<Shield, 'isConnected' | 'isOff' | 'tableVersion' | 'losses'>
  readonly clusters: readonly ClusterShield[]
  readonly sentReports: number
}

/**
 * The metrics of a process' shield, for the proxy and for an application's own meter. Counters are as of the last
 * status, at most a second ago. A key is never a label: hot keys are broken down by strategy and by the largest groups
 * of their outside names.
 */
export function shieldFamilies({ shield, clusters, sentReports }: ShieldSource): MetricFamily[] {
  const { droppedReports, troubles } = shield.losses
  const whole = (value: number): MetricPoint[] => [{ labels: {}, value }]
  const each = (of: (cluster: ClusterShield) => number | undefined): MetricPoint[] =>
    clusters.flatMap((cluster) => {
      const value = of(cluster)
      return value === undefined ? [] : [{ labels: { cluster: cluster.redisClusterId }, value }]
    })
  const by = (label: string, of: (cluster: ClusterShield) => ReadonlyMap<string, number>): MetricPoint[] =>
    clusters.flatMap((cluster) =>
      [...of(cluster)].map(([value, count]) => ({
        labels: { cluster: cluster.redisClusterId, [label]: value },
        value: count,
      })),
    )
  return [
    counter('reports_sent', 'Reports handed to a hub', whole(sentReports)),
    counter('reports_dropped', 'Reports dropped because the queue was full', whole(droppedReports)),
    counter('troubles', 'Internal failures of the shield', whole(troubles)),
    gauge('hub_connected', '1 while a hub is connected', whole(shield.isConnected ? 1 : 0)),
    gauge('off', '1 while the kill switch is on', whole(shield.isOff ? 1 : 0)),
    gauge('table_version', 'Version of the strategy table', whole(shield.tableVersion.version)),
    ...Object.entries(totalHelp).map(([name, help]) =>
      counter(
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        help,
        each(({ tally }) => tally.totals[name as TotalName]),
      ),
    ),
    gauge(
      'hot_keys',
      'Hot keys by strategy',
      by('strategy', ({ hotCounts }) => hotCounts.strategies),
    ),
    gauge(
      'hot_keys_by_group',
      'Hot keys by prefix group',
      by('group', ({ hotCounts }) => largestGroups(hotCounts.groups)),
    ),
    gauge(
      'cached_keys',
      'Hot keys with replies in memory',
      each(({ caches }) => caches.size),
    ),
    gauge(
      'cached_bytes',
      'Bytes of cached replies',
      each(({ caches }) => caches.bytes),
    ),
    gauge(
      'staleness_ms',
      'Largest staleness that canaries measured last',
      each(({ tally }) => tally.staleMs),
    ),
    gauge('watchers', 'Watchers by state', by('state', watcherStates)),
  ]
}

function counter(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'counter', name: `firebreak_shield_${name}_total`, help, points }
}

function gauge(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'gauge', name: `firebreak_shield_${name}`, help, points }
}

function watcherStates(cluster: ClusterShield): Map<string, number> {
  return countBy(cluster.watcherStatuses(), ({ state }) => state)
}

function countBy<Item>(items: Iterable<Item>, nameOf: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) ?? 0) + 1)
  return counts
}
