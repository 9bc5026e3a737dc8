import type { AlarmView, IngestView, KeyView, Overview, TrafficPoint } from '@firebreak/core'
import type { HubCore } from '../hub-core.ts'
import { keyViews } from './key-views.ts'

const overviewKeys = 50

/** What is hot now, and are we safe. */
export function overview(core: HubCore): Overview {
  const now = core.now()
  const { delivery } = core
  const keys = keyViews(core, { limit: overviewKeys })
  const alarms = core.alarms.list()
  const rate = core.traffic.latest(now)
  const isExposed = delivery.isOff && delivery.size > 0
  return {
    hubTime: now,
    hubId: core.options.hubId,
    isOff: delivery.isOff,
    isSafe: !isExposed && alarms.every(({ severity }) => severity !== 'critical'),
    verdict: verdict(core, keys, alarms, rate),
    table: { epoch: delivery.epoch, version: delivery.version },
    sensors: core.hosts.counts(),
    rate,
    traffic: core.traffic.points(now),
    keys,
    alarms,
    ingest: ingestView(core),
  }
}

export function ingestView(core: HubCore): IngestView {
  const { reportsPerSecond, entriesPerSecond } = core.governor.rates(core.now())
  return {
    reportsPerSecond: Math.round(reportsPerSecond),
    entriesPerSecond: Math.round(entriesPerSecond),
    refused: core.collector.refused,
    trackedKeys: core.engine.size,
    memoryBytes: core.engine.memoryBytes,
  }
}

function verdict(core: HubCore, keys: readonly KeyView[], alarms: readonly AlarmView[], rate: TrafficPoint): string {
  const hot = keys.filter(({ state }) => state === 'hot' || state === 'cooling')
  const plural = hot.length === 1 ? '1 key is hot' : `${hot.length} keys are hot`
  if (core.delivery.isOff)
    return `Protection is off: ${hot.length === 0 ? 'nothing is hot' : plural}, nothing is handled.`
  const critical = alarms.find(({ severity }) => severity === 'critical')
  if (critical !== undefined) return `Not safe: ${critical.cause}.`
  if (hot.length === 0) {
    return core.hosts.size === 0 ? 'No sensor reports yet.' : 'Safe: nothing is hot.'
  }
  const reads = rate.redis + rate.local + rate.copies
  const away = reads === 0 ? 0 : (rate.local + rate.copies) / reads
  const handled = away > 0 ? `; ${Number((away * 100).toFixed(1))} % of all reads are kept from Redis` : ''
  return `Safe: ${plural} and handled${handled}.`
}
