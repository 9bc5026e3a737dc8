import { type HistorySettings, type Runtime, systemRuntime } from '@firebreak/core'
import type { KeyRedaction } from '@firebreak/core/node'
import { makeLoadMeter } from './collect/process-load.ts'
import { type HubRetry, type HubRetryChoices, resolveHubRetry } from './config/retry-steps.ts'
import type { NodeOfSlot } from './decide/access-totals.ts'
import type { StrategyChooser } from './decide/choose-strategy.ts'
import { HubConfigError } from './errors.ts'
import type { OwnFigures } from './fleet/hub-figures.ts'
import { historyDefaults } from './history/heat-history.ts'

/** The hub's logger, shaped like pino's. */
export interface HubLogger {
  info(data: object, message: string): void
  warn(data: object, message: string): void
}

const silent: HubLogger = { info() {}, warn() {} }

/** Options of the hub's core: everything except the network. */
export interface HubCoreOptions {
  /** This hub's name for sensors and users. @default 'hub-' and 8 random hex digits */
  readonly hubId?: string
  /** How often sensors are asked to report. @default 100 */
  readonly reportIntervalMs?: number
  /** The longest interval that sensors are asked for when there are many. @default 5000 */
  readonly maxReportIntervalMs?: number
  /** Reports per second above which sensors are slowed down. @default 10000 */
  readonly maxReportsPerSecond?: number
  /** Entries per second above which sensors sample. @default 300000 */
  readonly maxEntriesPerSecond?: number
  /** An older report is refused. @default 10000 */
  readonly maxReportAgeMs?: number
  /** A larger report is refused. @default 4194304 */
  readonly maxReportBytes?: number
  /** How often sensors hear from the hub. @default 1000 */
  readonly heartbeatMs?: number
  /** A process that has not been heard of for this long is gone. @default 15000 */
  readonly hostTimeoutMs?: number
  /** Processes that are known at once. @default 100000 */
  readonly maxInstances?: number
  /** API calls that may wait for a newer table at a time; further ones are refused. @default 10000 */
  readonly maxTableWaits?: number
  /** A key's first report arms its evaluation after this … @default 200 */
  readonly settleMs?: number
  /** … and a random part of this. @default 100 */
  readonly settleJitterMs?: number
  /** How often keys that are not cold are evaluated. @default 100 */
  readonly tickMs?: number
  /** How long an entry of the table lives if the hub no longer extends it. @default 60000 */
  readonly entryTtlMs?: number
  /** How long keys that were hot before a restart stay so without being seen again. @default 5000 */
  readonly restartGraceMs?: number
  /**
   * Keys handled at a time; beyond that only the hottest are, and an alarm names the rule that is too broad. @default
   * 100000
   */
  readonly maxHotKeys?: number
  /**
   * Percentage of all accesses from which an unhandled hot key (`Observe`, shadow mode, no process to handle it) raises
   * an alarm; 0: never. @default 20
   */
  readonly hotKeyAlarmPercent?: number
  /** Accesses per second that one process may count; beyond that it is cut off. @default 2000000 */
  readonly maxInstanceAccessesPerSecond?: number
  /** Entries per second that one process may report. @default 100000 */
  readonly maxInstanceKeysPerSecond?: number
  /** Processes that may report under one app token at a time, unless the token says otherwise. @default 10000 */
  readonly maxTokenProcesses?: number
  /** Clusters that one process may name. @default 100 */
  readonly maxInstanceClusters?: number
  /** Connections that one process may have: the oldest of more is ended. @default 4 */
  readonly maxInstanceConnections?: number
  /** Keys that are counted at once, of all clusters together, some 100 bytes each. @default 2000000 */
  readonly maxTrackedKeys?: number
  /**
   * Threads that count keys, each a share of them by hash, in addition to the one that decides; worthwhile from several
   * hundred thousand entries per second. 0: none. @default 0
   */
  readonly ingestThreads?: number
  /** Bytes of reports in transit to and from the ingest threads; beyond that they are refused. @default 67108864 */
  readonly maxBacklogBytes?: number
  /** URLs that get a POST when an alarm starts and ends. @default [] */
  readonly alarmWebhooks?: readonly string[]
  /** Signs those POSTs with HMAC-SHA256 in the header `firebreak-signature`. @default none: not signed */
  readonly webhookSecret?: string
  /** How to retry failures between a change and the caches that hold it, by step. @default `hubRetrySteps` */
  readonly retry?: HubRetryChoices
  /** Maps keys to their names in everything that the hub stores, shows and sends. @default unchanged */
  readonly redactKey?: KeyRedaction
  /**
   * What is kept of the past unless a user changes it. @default 64 MiB a day; seconds for an hour, ten for a day,
   * minutes for 8
   */
  readonly history?: HistorySettings
  /** How many of each second's hottest keys the history keeps. @default 200 */
  readonly maxHistoryKeys?: number
  /** Chooses a hot key's strategy. @default by the key's load, among those of its level */
  readonly chooseStrategy?: StrategyChooser
  /** Names the node of a slot, for shares of a node. @default a cluster counts as one node */
  readonly nodeOfSlot?: NodeOfSlot
  /**
   * The fraction of time since its last call for which the process was busy, 0 to 1. @default the event loop's
   * utilization
   */
  readonly loadOf?: () => number
  /** What the hub's process uses, for the page of the fleet. @default nothing is told */
  readonly usage?: () => Pick<OwnFigures, 'startedAt' | 'memoryBytes' | 'busy'>
  /** Time, timers, chance and names. @default the process's own */
  readonly runtime?: Runtime
  /** @default none */
  readonly logger?: HubLogger
}

export type ResolvedCoreOptions = Required<
  Omit<HubCoreOptions, 'chooseStrategy' | 'webhookSecret' | 'redactKey' | 'retry'>
> &
  Pick<HubCoreOptions, 'chooseStrategy' | 'webhookSecret' | 'redactKey'> & { readonly retry: HubRetry }

/** The options with all defaults. */
export function resolveCoreOptions(options: HubCoreOptions): ResolvedCoreOptions {
  const { runtime = systemRuntime } = options
  checkPace(options)
  return {
    hubId: `hub-${runtime.newId().slice(0, 8)}`,
    reportIntervalMs: 100,
    maxReportIntervalMs: 5000,
    maxReportsPerSecond: 10_000,
    maxEntriesPerSecond: 300_000,
    maxReportAgeMs: 10_000,
    maxReportBytes: 4 * 1024 * 1024,
    heartbeatMs: 1000,
    hostTimeoutMs: 15_000,
    maxInstances: 100_000,
    maxTableWaits: 10_000,
    settleMs: 200,
    settleJitterMs: 100,
    tickMs: 100,
    entryTtlMs: 60_000,
    restartGraceMs: 5000,
    maxHotKeys: 100_000,
    hotKeyAlarmPercent: 20,
    maxInstanceAccessesPerSecond: 2_000_000,
    maxInstanceKeysPerSecond: 100_000,
    maxInstanceClusters: 100,
    maxInstanceConnections: 4,
    maxTokenProcesses: 10_000,
    maxTrackedKeys: 2_000_000,
    ingestThreads: 0,
    maxBacklogBytes: 64 * 1024 * 1024,
    alarmWebhooks: [],
    history: historyDefaults,
    maxHistoryKeys: 200,
    nodeOfSlot: () => '',
    loadOf: makeLoadMeter(),
    usage: () => ({}),
    logger: silent,
    ...options,
    runtime,
    retry: resolveHubRetry(options.retry),
  }
}

/** Refuses an interval above its bound, which would silently take precedence. */
export function checkPace({ reportIntervalMs = 100, maxReportIntervalMs = 5000 }: HubCoreOptions): void {
  if (reportIntervalMs <= maxReportIntervalMs) return
  throw new HubConfigError(
    'reportIntervalMs',
    `reportIntervalMs is ${reportIntervalMs}, but sensors are never asked for more than maxReportIntervalMs (${maxReportIntervalMs}): ` +
      'raise that too, and give every rule a windowMs of at least as much, since a report counts as one moment',
  )
}

/** How long a frame may take to arrive, and how much of unfinished ones is held. */
export interface UnfinishedFrameBounds {
  /** @default 10000 */
  readonly frameTimeoutMs?: number
  /** Bytes of unfinished frames of all sensors together. @default 134217728 */
  readonly maxUnfinishedBytes?: number
}

export const unfinishedFrameDefaults: Required<UnfinishedFrameBounds> = {
  frameTimeoutMs: 10_000,
  maxUnfinishedBytes: 128 * 1024 * 1024,
}
