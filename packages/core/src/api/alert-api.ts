/** Alarm notifications: routes to webhooks, and the outcome of each notice (`docs/reference/api.md#alarms`). */

/** The format that a webhook's receiver expects. */
export type AlertShape = 'slack' | 'dingtalk' | 'feishu' | 'teams' | 'pagerduty' | 'plain'

/** A route as shown to users: its address may be a secret, so only its host appears. */
export interface AlertRouteView {
  readonly name: string
  readonly shape: AlertShape
  readonly host: string
  /** Alarms of this severity or higher. */
  readonly severity: 'warning' | 'critical'
  /** Only alarms whose id starts with one of these; empty: all. */
  readonly alarms: readonly string[]
  readonly isEnabled: boolean
  readonly hasSecret: boolean
}

/** One notice sent to one route. */
export interface AlertDelivery {
  readonly at: number
  readonly route: string
  readonly event: 'raised' | 'cleared' | 'test'
  readonly alarmId: string
  readonly isDelivered: boolean
  readonly tries: number
  /** The response status, or why there was none. */
  readonly detail: string
}

/** `pending`: raised, but not for long enough to notify anybody; `inactive`: over. */
export type AlarmState = 'inactive' | 'pending' | 'firing'

/** Who acknowledged an alarm. */
export interface AlarmAcknowledgement {
  readonly who: string
  readonly at: number
}

/** No notifications are sent for the alarm until then. */
export interface AlarmSilence {
  readonly who: string
  readonly at: number
  readonly until: number
  readonly why: string
}

/** `POST /v1/finders`: a search for hot or big keys that the hub runs on a server it knows. */
export interface FinderRunView {
  readonly id: string
  readonly kind: 'big' | 'hot'
  readonly redisClusterId: string
  readonly who: string
  readonly startedAt: number
  readonly endedAt: number | null
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  /** Fraction done, 0 to 1; null if unknown. */
  readonly progress: number | null
  readonly detail: string
  /** The result, in the JSON of `firebreak find`. Null while it runs. */
  readonly result: unknown
}

/** What a sensor reports about one key when asked over its link. */
export interface KeyInspection {
  readonly redisClusterId: string
  readonly key: string
  /** The type as Redis names it; `none` if the key does not exist. */
  readonly type: string
  readonly bytes: number | null
  /** Null: no expiry. */
  readonly ttlMs: number | null
  readonly encoding: string
  /** Only if requested: text, or base64 for bytes that are not UTF-8. */
  readonly value?: { readonly text: string; readonly isBase64: boolean; readonly isCut: boolean }
  /**
   * The commands on the key by the process that answered, per second; null if the key is not hot there, which is when
   * nobody can tell.
   */
  readonly commands: readonly { readonly name: string; readonly perSecond: number }[] | null
  /** The host that answered. */
  readonly hostId: string
  readonly serviceId: string
}

/** One change to the rules. */
export interface RulesVersionView {
  readonly version: number
  readonly at: number
  readonly who: string
  readonly what: string
  readonly ruleId: string
  /** The rule before and after; null if there was none. */
  readonly before: unknown
  readonly after: unknown
}
