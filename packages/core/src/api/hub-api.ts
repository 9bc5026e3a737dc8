import type { Rule } from '../rules/rule.ts'
import type { Strategy } from '../strategy/strategy.ts'
import type { WatcherStatus } from '../wire/frame.ts'
import type { AlarmAcknowledgement, AlarmSilence, AlarmState } from './alert-api.ts'

/**
 * The JSON of the hub's HTTP API and its live WebSocket; the console and CLI are written against these types.
 *
 *     GET    /v1/overview              Overview
 *     GET    /v1/keys?limit=&offset=&sort=&state=&match=&cluster=&group=    { keys: KeyView[], total }
 *     GET    /v1/key-groups?limit=&state=&match=&cluster=&group=    { groups: KeyGroupView[] }
 *     GET    /v1/keys/{cluster}/{key}  KeyDetail            (key as key text)
 *     PUT    /v1/keys/{cluster}/{key}/action  { action, limit?, forMs? } → { rule }
 *     DELETE /v1/keys/{cluster}/{key}/action
 *     GET    /v1/hosts                 { hosts: HostView[] }
 *     GET    /v1/rules                 { rules: Rule[], version }
 *     PUT    /v1/rules/{id}            Rule (a rule as users write it) → { rule }
 *     DELETE /v1/rules/{id}
 *     POST   /v1/rules/{id}/dry-run    Rule (as users write it) → DryRunView
 *     GET    /v1/table                 { epoch, version, strategies: StrategyList }
 *     GET    /v1/history               HistoryView          (history-api.ts has all of /v1/history and /v1/reports)
 *     GET    /v1/audit?limit=&skip=    { entries: AuditEntry[], head: AuditHead | null, kept }
 *     GET    /v1/slots                 { slots: SlotView[] }  the busiest slots
 *     GET    /v1/alarms                { alarms: AlarmView[] }
 *     GET    /v1/hubs                  { hubs: HubView[] }  the hubs that share the store
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
  /** One sentence: what is hot now, and whether it is under control. */
  readonly verdict: string
  /** The verdict as a value; absent from hubs of earlier versions. */
  readonly safety?: Safety
  /** All hot keys by how they are handled; absent from hubs of earlier versions. */
  readonly hot?: Readonly<Record<KeyHandling, number>>
  /** Hot keys that a rule wants handled, by who can do it; absent from hubs of earlier versions, as is what follows. */
  readonly hotBy?: Readonly<Record<NonNullable<KeyView['carrier']>, number>>
  /** How many rules there are, and how many of them have something done about hot keys. */
  readonly rules?: { readonly total: number; readonly handling: number }
  readonly table: { readonly epoch: string; readonly version: number }
  readonly sensors: { readonly connected: number; readonly hosts: number; readonly services: number }
  /** Accesses per second over the last second, by who answered. */
  readonly rate: TrafficPoint
  /** The last two minutes, one point per second, oldest first. */
  readonly traffic: readonly TrafficPoint[]
  /** The hottest keys: hot ones first, then by rate; ties by key. */
  readonly keys: readonly KeyView[]
  readonly alarms: readonly AlarmView[]
  readonly ingest: IngestView
  /** True once a sensor has carried out a strategy for this store; absent from hubs of earlier versions. */
  readonly wasHandled?: boolean
}

/**
 * `observed`: some hot keys are only counted, or no rule would do more; `unknown`: no sensor is reporting, or there are
 * no rules, so we cannot tell.
 */
export type Safety = 'safe' | 'observed' | 'unsafe' | 'off' | 'unknown'

/**
 * How a hot key is handled: a strategy is in place; it is only counted (`Observe`, a rule in shadow mode, or services
 * that send reports and read no table); or it has a strategy, but no process can carry it out.
 */
export type KeyHandling = 'handled' | 'observed' | 'unhandled'

/** The accesses of one second. */
export interface TrafficPoint {
  /** Start of the second, hub time. */
  readonly at: number
  /** Reads that Redis answered. */
  readonly redis: number
  /** Reads answered from local memory. */
  readonly local: number
  /** Reads answered from copies. */
  readonly copies: number
  /** Requests refused by a limit. */
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
  /** Accesses per second. */
  readonly ratePerSecond: number
  readonly writesPerSecond: number
  readonly bytesPerSecond: number
  /** Fraction of all accesses, 0 to 1. */
  readonly share: number
  /** Accesses per second over the last minute, oldest first. */
  readonly sparkline: readonly number[]
  /** The rate is off by at most this much (sampling, sketches). */
  readonly errorPerSecond: number
  readonly hosts: number
  readonly slot: number
  readonly ruleId: string | null
  readonly strategy: Strategy | null
  /** Why, as a sentence. */
  readonly reason: string
  readonly since: number | null
  readonly effect: KeyEffectView | null
  /** Null while it is not hot; absent from hubs of earlier versions. */
  readonly handling?: KeyHandling | null
  /**
   * Who carries its strategy out: a `sensor` with a link to a hub (SDK or proxy); a program that reads `/v1/table`; one
   * that gets its table from a config `centre`; nobody, because its services only send `reports`, or because `none` of
   * their processes is there. Null while it is not hot or its rule only observes.
   */
  readonly carrier?: 'sensor' | 'table' | 'centre' | 'reports' | 'none' | null
  /** Accesses per second over the last full second, ten and sixty seconds; absent from hubs of earlier versions. */
  readonly rates?: { readonly second: number; readonly tenSeconds: number; readonly minute: number }
  /** Its place in the list by heat, from 1, and how many places it rose in ten seconds (negative: fell). */
  readonly rank?: number
  readonly rankMove?: number
  /** Services that touch it, by name; absent from hubs of earlier versions. */
  readonly services?: readonly string[]
  /** The node that has its slot; empty if the cluster counts as one node. */
  readonly node?: string
}

/** The keys with one prefix, summed. */
export interface KeyGroupView {
  /** What comes before the first separator; `other` if there is none. */
  readonly group: string
  readonly keys: number
  readonly hot: number
  readonly ratePerSecond: number
  readonly writesPerSecond: number
  readonly share: number
}

/** The strategy's effect: before and after. */
export interface KeyEffectView {
  readonly redisPerSecondBefore: number
  readonly redisPerSecondNow: number
  readonly localHitRate: number
  readonly bytesSaved: number
  readonly millisecondsSaved: number
  /** Increments merged into another command, as reported by this hub's sensors. @default none */
  readonly combinedPerSecond?: number
}

export interface KeyDetail extends KeyView {
  readonly topHosts: readonly { readonly hostId: string; readonly serviceId: string; readonly ratePerSecond: number }[]
  readonly events: readonly HistoryEvent[]
}

/** How reports come to a hub. */
export type ReportTransport = 'websocket' | 'http' | 'nats' | 'kafka'

export interface HostView {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  readonly agent: string
  readonly connectedAt: number
  readonly lastSeenAt: number
  readonly clockOffsetMs: number
  readonly tableVersion: number
  /** How long a newer table of its service has been unconfirmed; absent from hubs of earlier versions. */
  readonly tableBehindMs?: number
  readonly ratePerSecond: number
  readonly droppedReports: number
  readonly watchers: readonly WatcherStatus[]
  readonly isOff: boolean
  /** Fraction of its reads answered from its memory, as of its last status; null before the first read. */
  readonly hitRate?: number | null
  /** False if it reports over HTTP, has moved to another hub or has ended; absent from hubs of earlier versions. */
  readonly isConnected?: boolean
  /** How its newest report came; null before the first. Absent from hubs of earlier versions, as is what follows. */
  readonly reportsBy?: ReportTransport | null
  /** How old the counts of its newest report were when the hub had them; null before the first. */
  readonly reportLagMs?: number | null
  /**
   * How it gets its table: over its link, by asking for it, or, without either, where the hub publishes it to a centre;
   * null if in none of these ways. What comes from a centre is not confirmed.
   */
  readonly tablesBy?: 'websocket' | 'http' | 'centre' | null
  /** Bytes of replies that it keeps in memory; null if it does not tell. */
  readonly cachedBytes?: number | null
  /** Its own failures so far. */
  readonly failures?: number
  /** When it last dropped reports, or told of a failure; null if it never did. */
  readonly lastLossAt?: number | null
}

/** Something that happened to a key, or an alarm. */
export interface HistoryEvent {
  /** Hub time, in milliseconds. */
  readonly at: number
  readonly kind: /** A key crossed a threshold of a rule that is on: it is in the table from now on. */
    | 'hot'
    /** A hot key fell below its threshold and left the table. */
    | 'cooled'
    /** It is still hot; logged, but not kept. */
    | 'extended'
    /** It reached another level, or another strategy fits it better. */
    | 'strategy'
    /** Its strategy was given up, its rule was changed or removed, or a claim was withdrawn. */
    | 'rollback'
    /** One process saw the threshold crossed and acted before the hub could; the hub agrees. */
    | 'claim'
    /** It would be hot under a rule in shadow mode; nothing is delivered. */
    | 'shadow'
    /** It was made hot in advance. */
    | 'prewarm'
    /** An alarm was raised or has ended; without a key. */
    | 'alarm'
    /** The table with the key was sent to this many sensors. */
    | 'delivered'
    /** A sensor reported for the first time that it carries the strategy out. */
    | 'handled'
    /** How many episodes of an hour were not kept because they exceeded the hour's bound. */
    | 'leftOut'
  /** Empty where the event is of no cluster. */
  readonly redisClusterId: string
  /** Key text; empty where the event is of no key. */
  readonly key: string
  /** The rule that led to it; empty where none did. */
  readonly ruleId: string
  /** What happened and why, as a sentence. */
  readonly text: string
}

export interface AuditEntry {
  readonly at: number
  readonly who: string
  readonly what: string
  readonly before: unknown
  readonly after: unknown
  /** Its position in the chain of all entries, from 1; entries of versions without a chain have none. */
  readonly seq?: number
  /** The hash of the previous entry; empty for the first. */
  readonly previous?: string
  /** SHA-256 over the entry and `previous`. */
  readonly hash?: string
}

/** The newest entry of the audit chain. */
export interface AuditHead {
  readonly seq: number
  readonly hash: string
}

export interface SlotView {
  readonly redisClusterId: string
  readonly slot: number
  readonly ratePerSecond: number
}

/** An alarm: what is broken, since when, and what is being done about it. */
export interface AlarmView {
  /** Its kind, and what it is of: `store`, `hot-key:main/product_100`. */
  readonly id: string
  /** `critical`: the hub is not ready (`/readyz`) while it lasts, unless it is only cut off from a shared store. */
  readonly severity: 'warning' | 'critical'
  /** When it was raised, hub time in milliseconds. */
  readonly since: number
  /** What is broken, as a sentence. */
  readonly cause: string
  /** How often it was raised again while it lasted. */
  readonly count: number
  /** What is being done about it, or what to do. */
  readonly retry: string
  /** This and the following fields are absent from hubs of earlier versions. */
  readonly state?: AlarmState
  readonly acknowledged?: AlarmAcknowledgement | null
  readonly silence?: AlarmSilence | null
  /** When it ended; null while it lasts. */
  readonly endedAt?: number | null
  /** The key that the alarm concerns, as key text, if any. */
  readonly subject?: { readonly redisClusterId: string; readonly key: string }
}

/** One of the hubs that share a store. */
export interface HubView {
  readonly hubId: string
  /** True for the hub that answers. */
  readonly isThis: boolean
  /** Processes that report to it. */
  readonly processes: number
  /** True if the answering hub is cut off from the store and lists the others as last known. */
  readonly isAlone: boolean
  /** Absent from hubs of earlier versions, as is what follows. */
  readonly version?: string
  readonly startedAt?: number
  /** Resident memory of its process. */
  readonly memoryBytes?: number
  /** Part of the last seconds in which its event loop was busy, 0 to 1. */
  readonly busy?: number
  readonly reportsPerSecond?: number
  /** Reports that it has not counted since its start. */
  readonly refusedReports?: number
}

/** A way on which reports come in or tables go out. */
export interface TransportView {
  readonly kind: ReportTransport | 'centre'
  readonly carries: 'reports' | 'tables' | 'both'
  /** The address, without secrets; empty for the hub's own port. */
  readonly address: string
  readonly isLive: boolean
  /** What is wrong with it. */
  readonly detail: string
  /** Processes whose newest report came this way; for a centre, services whose table is published. */
  readonly users: number
  /** Reports that came this way since the start; null for a centre. */
  readonly reports: number | null
  /** The oldest counts among the newest reports of those processes; null without one. */
  readonly lagMs: number | null
}

/** A source of changes that the hub runs. */
export interface WatcherView {
  readonly name: string
  readonly kind: 'replica' | 'aof' | 'binlog'
  readonly redisClusterId: string
  readonly state: 'connecting' | 'live' | 'lagging' | 'failed' | 'closed'
  /** Explains the state where it needs explaining. */
  readonly detail: string
  /** What it did and what went wrong since it started. */
  readonly counts: Readonly<Record<string, number>>
}

/** How stale a rule's cached values were measured to be. */
export interface RuleStalenessView {
  readonly ruleId: string
  /** How often a canary has checked since start; the figures cover the last 2,000 checks. */
  readonly observations: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** What the rule allows; null: what its watcher guarantees. */
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

/** What a rule would have done with recorded traffic. */
export interface DryRunView {
  /** How much traffic was recorded. */
  readonly seconds: number
  readonly firings: number
  /** Keys that would have been hot. */
  readonly keys: number
  /** Fraction of all reads that hit keys while they would have been hot, 0 to 1. */
  readonly readShare: number
  /** Bytes moved by accesses to these keys during that time. */
  readonly bytes: number
  /** "would have fired 14 times in the last 600 s, 71 % of reads, 3 MB" */
  readonly text: string
  /** The recorded period that was replayed, and the length of its points; absent from hubs of earlier versions. */
  readonly from?: number
  readonly to?: number
  readonly resolutionMs?: number
  /** Reads of keys while they would have been handled: Redis would not have seen these. */
  readonly savedReads?: number
  /** Each key that would have been hot, most reads first, at most 1,000. */
  readonly hot?: readonly DryRunKey[]
}

/** What a rule would have done with one key. */
export interface DryRunKey {
  readonly redisClusterId: string
  readonly key: string
  readonly firings: number
  /** The spans in which it would have been hot; one that was still hot ends with the recording. */
  readonly spans: readonly { readonly from: number; readonly to: number; readonly strategy: string }[]
  /** Reads in those spans, reads that a strategy would have saved, and bytes. */
  readonly reads: number
  readonly savedReads: number
  readonly bytes: number
}

/** Every error response of the API. */
export interface ApiError {
  readonly code: string
  readonly message: string
  /** The invalid field, if there is one. */
  readonly field?: string
}
