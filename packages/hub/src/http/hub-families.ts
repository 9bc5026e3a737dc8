import { keyGroup, largestGroups } from '@firebreak/core'
import type { MetricFamily, MetricPoint, OtlpExporter } from '@firebreak/core/metrics'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { AlarmWebhooks } from '../alarms/alarm-webhooks.ts'
import { minAlarmRatePerSecond } from '../alarms/hot-key-alarms.ts'
import type { Collector } from '../collect/collector.ts'
import type { HotKeys } from '../decide/hot-keys.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { RuleBook } from '../rules/rule-book.ts'
import type { Journal } from '../store/journal.ts'
import type { HubViews } from '../views/hub-views.ts'
import type { HubWatchers } from '../watchers/hub-watchers.ts'
import { processFamilies } from './process-families.ts'

/** The sources of the hub's figures. */
export interface HubFigures {
  readonly alarms: AlarmBoard
  readonly webhooks: AlarmWebhooks
  readonly collector: Collector
  readonly keys: HotKeys
  readonly delivery: TableDelivery
  readonly fleet: Fleet
  readonly watchers: HubWatchers
  readonly book: RuleBook
  readonly journal: Journal
  now(): number
}

/** Number of keys considered for the figures by state, rule and group. */
const maxKeys = 1000

/** The hub's current figures; `exports`: the outcomes of pushes. */
export function hubFamilies(of: HubFigures, views: HubViews, exports?: OtlpExporter['counts']): MetricFamily[] {
  const { alarms, webhooks, collector, keys, delivery, fleet, watchers, book, journal } = of
  const { connected, hosts } = fleet.hosts.counts()
  const { redis, local, copies, limited } = fleet.traffic.latest(of.now())
  const severities = { warning: 0, critical: 0 }
  for (const { severity } of alarms.list()) severities[severity]++
  const sources = watchers.views()
  const staleness = fleet.staleness.views((id) => book.get(id))
  const { intervalMs, samplingFloor } = collector.governor.pace
  const { states, rules, groups, handling, shares } = sumsOfKeys(views, book)
  return [
    counter('reports_total', 'Reports counted since start', one(collector.reportCount)),
    counter('report_entries_total', 'Report entries counted since start', one(collector.entryCount)),
    counter('reports_refused_total', 'Reports not counted, by cause', by('cause', collector.refused)),
    gauge('sensors', 'Processes with an open connection', one(connected)),
    gauge('hosts', 'Hosts that report', one(hosts)),
    gauge('tracked_keys', 'Keys whose heat is tracked', one(keys.engine.size)),
    counter('tracked_keys_overflow_total', 'Keys not tracked for lack of room', one(keys.engine.overflowCount)),
    gauge('keys', 'Keys by state', by('state', Object.fromEntries(states))),
    gauge('hot_keys', 'Hot keys by rule', by('rule', Object.fromEntries(rules))),
    gauge('hot_keys_by_handling', 'Hot keys by whether a process carries out their strategy', by('handling', handling)),
    gauge('hot_key_share', 'Largest part of all accesses that one hot key takes, by handling', by('handling', shares)),
    gauge('table_version', 'Version of the strategy table', one(delivery.version)),
    gauge('switch_off', '1 while the kill switch is on', one(delivery.isOff ? 1 : 0)),
    gauge(
      'reads_per_second',
      'Reads in the last full second, by who answered',
      by('by', { redis, local, copies, limited }),
    ),
    gauge('group_accesses_per_second', 'Accesses of the hottest keys by prefix group', by('group', groups)),
    gauge('store_waiting', 'Events, entries and other writes waiting for the store', one(journal.waiting)),
    counter('store_lost_total', 'Writes lost because the store was unreachable for too long', by('kind', journal.lost)),
    gauge('alarms', 'Active alarms, by severity', by('severity', severities)),
    counter('alarms_raised_total', 'Alarms raised since the start', one(alarms.raisedCount)),
    counter('alarm_webhooks_total', 'Notices to alarm webhooks, by result', by('result', webhooks.counts)),
    gauge(
      'source_up',
      '1 while a source of changes is live',
      sources.map(({ name, state }) => ({ labels: { source: name }, value: state === 'live' ? 1 : 0 })),
    ),
    counter(
      'source_events_total',
      'What a source of changes did, by kind',
      sources.flatMap(({ name, counts }) => by('event', counts, { source: name })),
    ),
    gauge(
      'staleness_ms',
      'Staleness measured by canaries, by rule',
      staleness.flatMap(({ ruleId, p50Ms, p99Ms, maxMs }) =>
        by('quantile', { '0.5': p50Ms, '0.99': p99Ms, '1': maxMs }, { rule: ruleId }),
      ),
    ),
    counter(
      'otlp_exports_total',
      'Pushes to the OpenTelemetry collector by result',
      exports === undefined ? [] : by('result', { sent: exports.sent, failed: exports.failed }),
    ),
    gauge('report_interval_ms', 'How often sensors are asked to report', one(intervalMs)),
    gauge('sampling_floor', 'Counts below this are sampled', one(samplingFloor)),
    ...processFamilies(),
  ]
}

function sumsOfKeys(views: HubViews, book: RuleBook) {
  const states = new Map<string, number>()
  const rules = new Map<string, number>()
  const groups = new Map<string, number>()
  const shares = { handled: 0, observed: 0, shadow: 0, unhandled: 0 }
  // All of them always exist: an alert on a series that comes and goes would not fire.
  const handling = { handled: 0, observed: 0, unhandled: 0 }
  const add = (sums: Map<string, number>, name: string, amount: number) =>
    void sums.set(name, (sums.get(name) ?? 0) + amount)
  for (const { state, ruleId, key, ratePerSecond, share, handling: how } of views.keys({ limit: maxKeys })) {
    if (how != null) {
      handling[how]++
      const isShadow = how === 'observed' && ruleId !== null && book.get(ruleId)?.mode === 'shadow'
      const place = isShadow ? 'shadow' : how
      if (ratePerSecond >= minAlarmRatePerSecond) shares[place] = Math.max(shares[place], share)
    }
    if (state !== 'cold') add(states, state, 1)
    if ((state === 'hot' || state === 'cooling') && ruleId !== null) add(rules, ruleId, 1)
    add(groups, keyGroup(key), ratePerSecond)
  }
  return { states, rules, handling, shares, groups: Object.fromEntries(largestGroups(groups)) }
}

function one(value: number): MetricPoint[] {
  return [{ labels: {}, value }]
}

function by(
  label: string,
  values: Readonly<Record<string, number>>,
  labels: Readonly<Record<string, string>> = {},
): MetricPoint[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { ...labels, [label]: name }, value }))
}

function counter(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'counter', name: `firebreak_${name}`, help, points }
}

function gauge(name: string, help: string, points: readonly MetricPoint[]): MetricFamily {
  return { kind: 'gauge', name: `firebreak_${name}`, help, points }
}
