import type { AuditEntry, HistoryEvent, TrafficPoint } from './hub-api.ts'

/**
 * What the hub reports about the past (`docs/reference/api.md#history`): series, heat maps, episodes and reports. All
 * times are hub time, in milliseconds; a period starts at `from` and ends before `to`.
 */

/** What a row of the history describes. */
export type HistorySubject = 'key' | 'prefix' | 'service' | 'node' | 'slot'

/** Sums over a period. */
export interface HistoryAmounts {
  readonly accesses: number
  readonly writes: number
  readonly bytes: number
  /** Reads that never reached Redis: answered from memory, or refused by a limit. */
  readonly saved: number
}

/**
 * A key's state at each point, one letter each: `.` cold or not among the recorded keys, `w` warming, and while hot the
 * strategy in place: `o` observed, `m` local memory, `c` copies, `i` increments combined, `l` limited.
 */
export type HeatLetter = '.' | 'w' | 'o' | 'm' | 'c' | 'i' | 'l'

/** One key, prefix, service, node or slot over the period. */
export interface HistoryRow extends HistoryAmounts {
  /** Key text, prefix, service, node, or slot number. */
  readonly name: string
  /** Empty if it spans all clusters. */
  readonly redisClusterId: string
  /** Fraction of all accesses in the period, 0 to 1. */
  readonly share: number
  /** The most accesses recorded in one second, and the point they fall in. */
  readonly peakPerSecond: number
  readonly peakAt: number
  /** How long it was hot. */
  readonly hotMs: number
  /** Accesses per second, one for each point. */
  readonly series: readonly number[]
  /** Reads per second kept away from Redis, one for each point. */
  readonly savedSeries: readonly number[]
  /** Keys only: a `HeatLetter` for each point. */
  readonly states: string
  /** Keys only. */
  readonly services: readonly string[]
  readonly ruleIds: readonly string[]
  readonly slot: number | null
  readonly node: string
}

/** `GET /v1/history` */
export interface HistoryView {
  readonly by: HistorySubject
  readonly from: number
  readonly to: number
  /** The length of a point: 1 s, 10 s or 1 min, or a multiple of 1 min for long periods. */
  readonly resolutionMs: number
  /** The number of points; point i starts at `from + i * resolutionMs`. */
  readonly points: number
  /** Busiest first, or in the order given by `sort`. */
  readonly rows: readonly HistoryRow[]
  /** Number of rows on all pages. */
  readonly total: number
  readonly page: number
  readonly pages: number
  /** Everything in the period, including what is in no row. */
  readonly totals: HistoryAmounts
  /** Accesses per second by who answered, one for each point. */
  readonly traffic: readonly TrafficPoint[]
  /** The newest matching events of the period, at most `limit`; with `marks`, the most telling ones spread over all of it. */
  readonly events: readonly HistoryEvent[]
  /** The start of what is kept at this resolution; null if nothing is. */
  readonly recordedFrom: number | null
}

/** `GET /v1/history/heatmap` */
export interface HeatMapView {
  readonly by: HistorySubject
  readonly from: number
  readonly to: number
  readonly resolutionMs: number
  readonly columns: number
  /** The busiest of the period; slots and nodes in their own order, others by accesses. */
  readonly rows: readonly { readonly name: string; readonly redisClusterId: string; readonly accesses: number }[]
  /** Accesses per second: a list for each row, with one value for each column. */
  readonly cells: readonly (readonly number[])[]
  /** The start of what is kept at this resolution, null if nothing is; absent from hubs of earlier versions. */
  readonly recordedFrom?: number | null
  /** The largest cell. */
  readonly max: number
}

/** One time that a key was hot, from detection to end. */
export interface HotEpisode {
  readonly redisClusterId: string
  /** Key text. */
  readonly key: string
  readonly ruleId: string
  /** Services to which the table with the key was sent. */
  readonly services: readonly string[]
  /** Nothing was done: the rule is in shadow mode. */
  readonly isShadow: boolean
  /** In the order in which they were in place. */
  readonly strategies: readonly string[]
  /** Why, as a sentence. */
  readonly reason: string
  /** When the decision was made. */
  readonly detectedAt: number
  /** When the table was sent to the sensors; null if none was connected, or it is not known. */
  readonly deliveredAt: number | null
  /** When a sensor first reported that it carries the strategy out. */
  readonly handledAt: number | null
  /** When it stopped being hot; null while it still is. */
  readonly cooledAt: number | null
  /** `rollback`: a rule was changed, or a strategy was abandoned or withdrawn. */
  readonly end: 'cooled' | 'rollback' | null
  /** All recorded events of the episode, oldest first. */
  readonly steps: readonly HistoryEvent[]
}

/** `GET /v1/history/events` */
export interface EpisodesView {
  readonly from: number
  readonly to: number
  /** Newest first. */
  readonly episodes: readonly HotEpisode[]
  /** Number of episodes on all pages. */
  readonly total: number
  readonly page: number
  readonly pages: number
  /** What users did in the period, newest first, at most `limit`. */
  readonly changes: readonly AuditEntry[]
  /** A page of single events, newest first, with the same filter; this and what follows is absent from hubs of earlier versions. */
  readonly events?: readonly HistoryEvent[]
  readonly eventTotal?: number
  readonly eventPages?: number
  /** How many keys were hot at each requested point; point i starts at `from + i * resolutionMs`. */
  readonly hotKeys?: readonly number[]
  readonly resolutionMs?: number
  /** What is missing from the period: how many episodes were not kept, and when the kept events begin. */
  readonly leftOut?: number
  readonly eventsFrom?: number | null
  /** Medians over all pages; null if nothing is known. */
  readonly deliveredMs: number | null
  readonly handledMs: number | null
}

/** One key of a report. */
export interface ReportKey extends HistoryAmounts {
  readonly redisClusterId: string
  readonly key: string
  readonly services: readonly string[]
  readonly ruleIds: readonly string[]
  /** How often and how long it was hot. */
  readonly episodes: number
  readonly hotMs: number
  readonly peakPerSecond: number
  readonly peakAt: number
  readonly share: number
  /** Episodes in which the strategy was rolled back or saved Redis nothing. */
  readonly falseAlarms: number
  /** Number of days in the period on which it was hot. */
  readonly days: number
}

/** The same, by service or by rule. */
export interface ReportGroup {
  readonly name: string
  readonly keys: number
  readonly episodes: number
  readonly hotMs: number
  readonly saved: number
  readonly falseAlarms: number
}

/** `GET /v1/reports`: what was hot, and what handling it saved. */
export interface HeatReport {
  readonly by: 'day' | 'week'
  /** `2026-11-17`, `2026-W47`. */
  readonly name: string
  readonly from: number
  readonly to: number
  /** The fraction of the period that was recorded, 0 to 1. */
  readonly coverage: number
  /**
   * What is missing from its decisions: how many episodes were not kept, and when the kept events begin (null: no event
   * is kept). Absent from hubs of earlier versions.
   */
  readonly leftOut?: number
  readonly eventsFrom?: number | null
  readonly totals: HistoryAmounts & {
    readonly keys: number
    readonly episodes: number
    readonly falseAlarms: number
    /** Fraction of all reads that strategies kept away from Redis. */
    readonly savedShare: number
  }
  /** Longest hot first. */
  readonly keys: readonly ReportKey[]
  readonly services: readonly ReportGroup[]
  readonly rules: readonly ReportGroup[]
  /** Keys that were hot on at least two of the seven days up to the end of the period, with those days. */
  readonly recurring: readonly {
    readonly redisClusterId: string
    readonly key: string
    readonly days: readonly string[]
  }[]
  /** Names of the periods before and after this one. */
  readonly previous: string
  readonly next: string | null
}

/** What is kept of the past and what it costs (`GET /v1/history/settings`). */
export interface HistorySettingsView extends HistorySettings {
  readonly cost: {
    /** Bytes currently in the store, for all hubs. */
    readonly keptBytes: number
    /** What this hub has recently written, in bytes per day; null before the first minute. */
    readonly bytesPerDay: number | null
    /** The most that can be in the store, per hub. */
    readonly maxKeptBytes: number
    /** Decisions are kept as long as points of 1 min; absent from hubs of earlier versions. */
    readonly decisions?: {
      readonly kept: number
      readonly from: number | null
      readonly keptBytes: number
      /** What this hub has recently added, in bytes per day; null before the first minute. */
      readonly bytesPerDay: number | null
      /** The most that this hub adds in a day: an eighth of `maxBytesPerDay`. */
      readonly maxBytesPerDay: number
    }
  }
}

/** What is kept of the past. */
export interface HistorySettings {
  /** The most bytes that one hub adds in a day; beyond that the coldest keys are merged into one sum. */
  readonly maxBytesPerDay: number
  /** How long points of 1 s, 10 s and 1 min are kept. */
  readonly keepMs: { readonly second: number; readonly tenSeconds: number; readonly minute: number }
}
