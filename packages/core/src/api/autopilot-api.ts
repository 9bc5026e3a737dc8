/** What the hub reports about its autopilot (`docs/guides/autopilot.md`). All times are hub time, in milliseconds. */

/** How a node's load was measured. */
export type LoadSource = 'cpu' | 'latency'

/** The load of one Redis node, measured, and estimated without any strategy. */
export interface NodeLoadView {
  readonly redisClusterId: string
  /** `host:port` as seen by the process that measures it. */
  readonly node: string
  readonly source: LoadSource
  /** Who measured it, and when. */
  readonly measuredBy: string
  readonly measuredAt: number
  /** Fraction of its capacity in use, 0 to 1. */
  readonly utilisation: number
  /** The same, had no strategy been in place: this is what decides. */
  readonly unhandledUtilisation: number
  /** Operations per second at which the node would be saturated, as learned; null while unknown. */
  readonly capacityPerSecond: number | null
  /** Operations per second that it serves, and that it would serve without any strategy. */
  readonly operationsPerSecond: number
  readonly demandPerSecond: number
  /** The current round trip, and the fastest recent one. */
  readonly roundTripMs: number
  readonly leastRoundTripMs: number
  /** True while keys are handled because of this node's load. */
  readonly isStrained: boolean
  /** A key is handled from this rate of avoidable reads; null while the node is calm. */
  readonly linePerSecond: number | null
  readonly text: string
}

/** A key that an `auto` rule in shadow mode would handle now. */
export interface BesideKeyView {
  readonly redisClusterId: string
  /** Key text. */
  readonly key: string
  readonly ruleId: string
  readonly since: number
  readonly reason: string
  /** True if another rule handles the key too. */
  readonly isHandled: boolean
}

/** `GET /v1/autopilot` */
export interface AutopilotView {
  readonly nodes: readonly NodeLoadView[]
  /** What `auto` rules in shadow mode would do, next to what is actually done. */
  readonly beside: readonly BesideKeyView[]
  /**
   * Keys that are handled although no `auto` rule in shadow mode would handle them, as key text; empty if there is no
   * such rule.
   */
  readonly onlyHandled: readonly { readonly redisClusterId: string; readonly key: string; readonly reason: string }[]
}

/** What to do about expected heat. */
export type ForecastMode = 'off' | 'suggest' | 'do'

export interface ForecastSettings {
  readonly mode: ForecastMode
  /** How long before the heat its keys are warmed. */
  readonly leadMs: number
  /** The time zone that days and weeks refer to; an IANA name. */
  readonly timeZone: string
}

/** Heat that recurs: every day at a time, or every week on a day at a time. */
export interface RecurrenceView {
  readonly id: string
  readonly redisClusterId: string
  /** Key text, or a prefix if different keys with that prefix are hot each time. */
  readonly name: string
  readonly isPrefix: boolean
  readonly cycle: 'day' | 'week'
  /** `10:00`, `Friday 20:00`, in the time zone of the settings. */
  readonly when: string
  /** How precise the time is: nine of ten occurrences were within this of it. */
  readonly spreadMs: number
  /** Fraction of the expected times at which it occurred, weighted towards recent ones, 0 to 1. */
  readonly confidence: number
  readonly seen: number
  readonly missed: number
  readonly lastAt: number
  /** When it is next expected, and when warming would start. */
  readonly nextAt: number
  readonly warmAt: number
  /** Keys that would be warmed: key texts. */
  readonly keys: readonly string[]
  /** True if it is certain enough to be warmed. */
  readonly isTrusted: boolean
  readonly text: string
}

/** `GET /v1/forecast` */
export interface ForecastView {
  readonly settings: ForecastSettings
  readonly recurrences: readonly RecurrenceView[]
  /** True if hardly anything expected today has come: nothing more is warmed until something does. */
  readonly isQuiet: boolean
  /** When occurrences were last learned from the history. */
  readonly learntAt: number | null
  readonly warmed: number
  readonly inTime: number
}
