import type { HostView } from '@firebreak/core'
import { duration, milliseconds } from '../format/format.ts'
import { t } from '../text/text.ts'

const silentMs = 5000
const skewedMs = 1000
/** Sensors confirm a table with their next status, a second later. */
const lateMs = 3000
/** Reports come every 100 ms unless the hub asks for fewer, and are dated by the middle of their interval. */
const lateReportMs = 2000
/** What was lost long ago is a figure, and no trouble. */
const lossMs = 600_000

/** What is wrong with a sensor, in words; the worst first. `hubVersion` is that of the hub that answers. */
export function troublesOf(host: HostView, now: number, hubVersion?: string): string[] {
  const troubles: string[] = []
  const version = versionOf(host.agent)
  if (now - host.lastSeenAt > silentMs) troubles.push(t('silent for {time}', { time: duration(now - host.lastSeenAt) }))
  if (host.isConnected === false && host.tablesBy == null) troubles.push(t('reports only, gets no table'))
  else if (!host.isOff && (host.tableBehindMs ?? 0) > lateMs)
    troubles.push(t('without the newest table for {time}', { time: duration(host.tableBehindMs!) }))
  if (host.isOff) troubles.push(t('switched off'))
  for (const { kind, state, detail } of host.watchers)
    if (state !== 'live')
      troubles.push(t('its watcher ({kind}) is {state}', { kind, state: t(state) }) + (detail && `: ${detail}`))
  if ((host.reportLagMs ?? 0) > lateReportMs)
    troubles.push(t('its reports come {time} late', { time: milliseconds(host.reportLagMs!) }))
  if (Math.abs(host.clockOffsetMs) > skewedMs)
    troubles.push(t('its clock is off by {time}', { time: milliseconds(Math.abs(Math.round(host.clockOffsetMs))) }))
  const isLosing = host.lastLossAt === undefined || now - (host.lastLossAt ?? 0) < lossMs
  if (isLosing && host.droppedReports > 0) troubles.push(t('dropped reports'))
  if (isLosing && (host.failures ?? 0) > 0) troubles.push(t('failures of its own; the alarms name them'))
  if (version !== undefined && hubVersion !== undefined && version !== hubVersion)
    troubles.push(t('of version {version}, the hub is {hub}', { version, hub: hubVersion }))
  return troubles
}

/** `client/0.1.0 ioredis` is a client of 0.1.0; whoever reports by itself names no version. */
export function versionOf(agent: string): string | undefined {
  return /^\w+\/(\d[\w.+-]*)/.exec(agent)?.[1]
}

/** `client ioredis`, `proxy`, `http`. */
export function kindOf(agent: string): string {
  return agent.replace(/\/\d[\w.+-]*/, '')
}
