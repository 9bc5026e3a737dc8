import type { Rule } from '../rules/rule.ts'
import type { Strategy } from '../strategy/strategy.ts'
import type { WatcherStatus } from '../wire/frame.ts'

/**
 * The JSON that the hub's HTTP API and its live WebSocket speak; console and CLI are written against these types.
 *
 *     GET    /v1/overview              Overview
 *     GET    /v1/keys?limit=&state=    { keys: KeyView[] }
 *     GET    /v1/keys/{cluster}/{key}  KeyDetail            (key as key text)
 *     PUT    /v1/keys/{cluster}/{key}/action  { action, limit?, forMs? } → { rule }
 *     DELETE /v1/keys/{cluster}/{key}/action
 *     GET    /v1/hosts                 { hosts: HostView[] }
 *     GET    /v1/rules                 { rules: Rule[], version }
 *     PUT    /v1/rules/{id}            Rule (a rule as users write it) → { rule }
 *     DELETE /v1/rules/{id}
 *     POST   /v1/rules/{id}/dry-run    Rule (as users write it) → DryRunView
 *     GET    /v1/table                 { epoch, version, strategies: StrategyList }
 *     GET    /v1/history?since=&limit= { events: HistoryEvent[] }
 *     GET    /v1/audit?limit=          { entries: AuditEntry[] }
 *     GET    /v1/slots                 { slots: SlotView[] }  the busiest slots
 *     GET    /v1/alarms                { alarms: AlarmView[] }
 *     GET    /v1/watchers              { watchers: WatcherView[] }  sources of changes that the hub runs
 *     GET    /v1/staleness             { rules: RuleStalenessView[] }  what the canaries saw
 *     POST   /v1/switch                { isOff: boolean }
 *     POST   /v1/reports               a text report
 *     WS     /v1/live                  one `Overview` as text per second (or when something changes)
 *     WS     /v1/sensor                frames, see wire/frame.ts
 */
export interface Overview {
  readonly hubTime: number
  readonly hubId: string
  readonly isOff: boolean
  readonly isSafe: boolean
  /** One sentence: what is hot now and are we safe. */
  readonly verdict: string
  /** What the verdict comes to; missing from hubs of earlier versions. */
  readonly safety?: Safety
  /** All hot keys by what is done about them; missing from hubs of earlier versions. */
  readonly hot?: Readonly<Record<KeyHandling, number>>
  readonly table: { readonly epoch: string; readonly version: number }
  readonly sensors: { readonly connected: number; readonly hosts: number; readonly services: number }
  /** Accesses a second over the last second, by who answered. */
  readonly rate: TrafficPoint
  /** The last two minutes, a point a second, oldest first. */
  readonly traffic: readonly TrafficPoint[]
  /** The hottest keys, hot ones first, then by rate; ties by key. */
  readonly keys: readonly KeyView[]
  readonly alarms: readonly AlarmView[]
  readonly ingest: IngestView
}

/** `observed`: keys are hot that are only counted; `unknown`: nobody reports, so nothing can be said. */
export type Safety = 'safe' | 'observed' | 'unsafe' | 'off' | 'unknown'

/**
 * What is done about a hot key: a strategy is carried out; it is only counted (`Observe`, or a rule in shadow mode); or
 * there is a strategy and no process that could carry it out.
 */
export type KeyHandling = 'handled' | 'observed' | 'unhandled'

/** Accesses of one second. */
export interface TrafficPoint {
  /** Start of the second, hub time. */
  readonly at: number
  /** Reads that Redis answered. */
  readonly redis: number
  /** Reads answered from local memory. */
  readonly local: number
  /** Reads answered by copies. */
  readonly copies: number
  /** Refused by a limit. */
  readonly limited: number
  readonly writes: number
}

export type HeatStateName = 'cold' | 'warming' | 'hot' | 'cooling'

/** One key as the console shows it. */
export interface KeyView {
  readonly redisClusterId: string
  /** Key text. */
  readonly key: string
  readonly state: HeatStateName
  /** Accesses a second. */
  readonly ratePerSecond: number
  readonly writesPerSecond: number
  readonly bytesPerSecond: number
  /** Part of all accesses, 0 to 1. */
  readonly share: number
  /** Accesses a second over the last minute, oldest first. */
  readonly sparkline: readonly number[]
  /** The rate is at most this much too high or too low (sampling, sketches). */
  readonly errorPerSecond: number
  readonly hosts: number
  readonly slot: number
  readonly ruleId: string | null
  readonly strategy: Strategy | null
  /** Why, in words. */
  readonly reason: string
  readonly since: number | null
  readonly effect: KeyEffectView | null
  /** Null while it is not hot; missing from hubs of earlier versions. */
  readonly handling?: KeyHandling | null
}

/** What the strategy brings, before and after. */
export interface KeyEffectView {
  readonly redisPerSecondBefore: number
  readonly redisPerSecondNow: number
  readonly localHitRate: number
  readonly bytesSaved: number
  readonly millisecondsSaved: number
}

export interface KeyDetail extends KeyView {
  readonly topHosts: readonly { readonly hostId: string; readonly serviceId: string; readonly ratePerSecond: number }[]
  readonly events: readonly HistoryEvent[]
}

export interface HostView {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  readonly agent: string
  readonly connectedAt: number
  readonly lastSeenAt: number
  readonly clockOffsetMs: number
  readonly tableVersion: number
  readonly ratePerSecond: number
  readonly droppedReports: number
  readonly watchers: readonly WatcherStatus[]
  readonly isOff: boolean
  /** False where it reports over HTTP, has moved to another hub or has ended; missing from hubs of earlier versions. */
  readonly isConnected?: boolean
}

export interface HistoryEvent {
  readonly at: number
  readonly kind: 'hot' | 'cooled' | 'extended' | 'strategy' | 'rollback' | 'claim' | 'shadow' | 'prewarm' | 'alarm'
  readonly redisClusterId: string
  readonly key: string
  readonly ruleId: string
  readonly text: string
}

export interface AuditEntry {
  readonly at: number
  readonly who: string
  readonly what: string
  readonly before: unknown
  readonly after: unknown
}

export interface SlotView {
  readonly redisClusterId: string
  readonly slot: number
  readonly ratePerSecond: number
}

export interface AlarmView {
  readonly id: string
  readonly severity: 'warning' | 'critical'
  readonly since: number
  readonly cause: string
  readonly count: number
  readonly retry: string
}

/** A source of changes that the hub runs. */
export interface WatcherView {
  readonly name: string
  readonly kind: 'replica' | 'aof' | 'binlog'
  readonly redisClusterId: string
  readonly state: 'connecting' | 'live' | 'lagging' | 'failed' | 'closed'
  /** Why it is in its state, where that needs a word. */
  readonly detail: string
  /** What it did and what went wrong, since start. */
  readonly counts: Readonly<Record<string, number>>
}

/** How stale the cached values of a rule were seen to be. */
export interface RuleStalenessView {
  readonly ruleId: string
  /** How often a canary looked, since start; the figures are of the last 2,000 times. */
  readonly observations: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** What the rule allows; null: what its watcher promises. */
  readonly maxStalenessMs: number | null
  readonly lastAt: number
}

export interface IngestView {
  readonly reportsPerSecond: number
  readonly entriesPerSecond: number
  /** Refused reports by cause, since start. */
  readonly refused: Readonly<Record<string, number>>
  readonly trackedKeys: number
  readonly memoryBytes: number
}

export interface RulesView {
  readonly rules: readonly Rule[]
  readonly version: number
}

/** What a rule would have done in what was recorded. */
export interface DryRunView {
  /** How much was recorded. */
  readonly seconds: number
  readonly firings: number
  /** Keys that would have been hot. */
  readonly keys: number
  /** Part of all reads that fell on keys while they would have been hot, 0 to 1. */
  readonly readShare: number
  /** Bytes of the accesses of these keys meanwhile. */
  readonly bytes: number
  /** "would have fired 14 times in the last 600 s, 71 % of reads, 3 MB" */
  readonly text: string
}

/** Every error answer of the API. */
export interface ApiError {
  readonly code: string
  readonly message: string
  /** The field that is wrong, where one is. */
  readonly field?: string
}
