import { keyGroup, largestGroups, type MetricFamily, type OtlpExporter } from '@firebreak/core'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { HubCore } from '../hub-core.ts'
import { keyViews } from '../views/key-views.ts'
import { ingestView } from '../views/overview.ts'
import { registryFamilies } from './registry-families.ts'

/** The hub's figures, read when they are asked for. */
export interface HubMetrics {
  readonly contentType: string
  /** In Prometheus' words. */
  text(): Promise<string>
  /** The same for whoever pushes them. */
  families(): Promise<MetricFamily[]>
}

/** What is known elsewhere since the start; here it is only told. */
class Total<Label extends string> extends Counter<Label> {
  set(value: number): void
  set(labels: Partial<Record<Label, string>>, value: number): void
  set(labels: Partial<Record<Label, string>> | number, value = 0): void {
    if (typeof labels === 'number') {
      this.reset()
      this.inc(labels)
    } else {
      this.remove(labels)
      this.inc(labels, value)
    }
  }
}

/** Makes the hub's figures; `exports` is what became of those that were pushed. */
export function hubMetrics(core: HubCore, exports?: OtlpExporter['counts']): HubMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const configOf = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) => ({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
  })
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge(configOf(name, help, labelNames))
  const total = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Total(configOf(name, help, labelNames))

  const reports = total('firebreak_reports_total', 'Reports counted since start')
  const entries = total('firebreak_report_entries_total', 'Report entries counted since start')
  const refused = total('firebreak_reports_refused_total', 'Reports not counted, by cause', ['cause'])
  const sensors = gauge('firebreak_sensors', 'Processes with an open connection')
  const hosts = gauge('firebreak_hosts', 'Hosts that report')
  const tracked = gauge('firebreak_tracked_keys', 'Keys whose heat is tracked')
  const overflow = total('firebreak_tracked_keys_overflow_total', 'Keys that found no room')
  const keys = gauge('firebreak_keys', 'Keys by state', ['state'])
  const hotByRule = gauge('firebreak_hot_keys', 'Hot keys by rule', ['rule'])
  const version = gauge('firebreak_table_version', 'Version of the strategy table')
  const isOff = gauge('firebreak_switch_off', '1 while the kill switch is thrown')
  const answered = gauge('firebreak_reads_per_second', 'Reads of the last full second by who answered', ['by'])
  const groups = gauge('firebreak_group_accesses_per_second', 'Accesses of the hottest keys by prefix group', ['group'])
  const alarms = gauge('firebreak_alarms', 'Alarms that last, by severity', ['severity'])
  const raised = total('firebreak_alarms_raised_total', 'Alarms that began since start')
  const webhooks = total('firebreak_alarm_webhooks_total', 'Notices to alarm webhooks by result', ['result'])
  const sources = gauge('firebreak_source_up', '1 while a source of changes is live', ['source'])
  const sourceCounts = total('firebreak_source_events_total', 'What a source of changes did, by kind', [
    'source',
    'event',
  ])
  const staleness = gauge('firebreak_staleness_ms', 'Staleness that canaries saw, by rule', ['rule', 'quantile'])
  const pushed = total('firebreak_otlp_exports_total', 'Pushes to the OpenTelemetry collector by result', ['result'])
  const interval = gauge('firebreak_report_interval_ms', 'How often sensors are asked to report')
  const floor = gauge('firebreak_sampling_floor', 'Counts below this are sampled')

  const collect = () => {
    const now = core.now()
    const { connected, hosts: hostCount } = core.hosts.counts()
    reports.set(core.collector.reportCount)
    entries.set(core.collector.entryCount)
    for (const [cause, count] of Object.entries(ingestView(core).refused)) refused.set({ cause }, count)
    sensors.set(connected)
    hosts.set(hostCount)
    tracked.set(core.engine.size)
    overflow.set(core.engine.overflowCount)
    version.set(core.delivery.version)
    isOff.set(core.delivery.isOff ? 1 : 0)
    const { redis, local, copies, limited } = core.traffic.latest(now)
    for (const [by, rate] of Object.entries({ redis, local, copies, limited })) answered.set({ by }, rate)
    raised.set(core.alarms.raisedCount)
    for (const [result, count] of Object.entries(core.webhooks.counts)) webhooks.set({ result }, count)
    sources.reset()
    for (const { name: source, state, counts } of core.watchers.views()) {
      sources.set({ source }, state === 'live' ? 1 : 0)
      for (const [event, count] of Object.entries(counts)) sourceCounts.set({ source, event }, count)
    }
    if (exports !== undefined) {
      pushed.set({ result: 'sent' }, exports.sent)
      pushed.set({ result: 'failed' }, exports.failed)
    }
    staleness.reset()
    for (const { ruleId: rule, p50Ms, p99Ms, maxMs } of core.staleness.views((id) => core.rule(id))) {
      for (const [quantile, value] of [
        ['0.5', p50Ms],
        ['0.99', p99Ms],
        ['1', maxMs],
      ] as const)
        staleness.set({ rule, quantile }, value)
    }
    interval.set(core.governor.pace.intervalMs)
    floor.set(core.governor.pace.samplingFloor)
    for (const severity of ['warning', 'critical'] as const) {
      alarms.set({ severity }, core.alarms.list().filter((alarm) => alarm.severity === severity).length)
    }
    collectKeys()
  }

  const collectKeys = () => {
    const views = keyViews(core, { limit: 1000 })
    keys.reset()
    hotByRule.reset()
    groups.reset()
    const sums = new Map<string, number>()
    for (const { state, ruleId, key, ratePerSecond } of views) {
      if (state !== 'cold') keys.inc({ state })
      if ((state === 'hot' || state === 'cooling') && ruleId !== null) hotByRule.inc({ rule: ruleId })
      const group = keyGroup(key)
      sums.set(group, (sums.get(group) ?? 0) + ratePerSecond)
    }
    for (const [group, rate] of largestGroups(sums)) groups.set({ group }, rate)
  }

  return {
    contentType: registry.contentType,
    text() {
      collect()
      return registry.metrics()
    },
    families() {
      collect()
      return registryFamilies(registry)
    },
  }
}
