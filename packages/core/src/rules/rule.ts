import type { Strategy } from '../strategy/strategy.ts'

/** Which keys a rule is about: exactly one kind of pattern. */
export type KeyPattern =
  | { readonly kind: 'exact'; readonly keys: readonly string[] }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'suffix'; readonly suffix: string }
  | { readonly kind: 'glob'; readonly glob: string }
  | { readonly kind: 'regex'; readonly regex: string }

/** What a level of heat measures in the window. */
export type HeatMeasure = 'accesses' | 'reads' | 'writes' | 'bytes'

/** One level of heat and what is done at it. */
export interface RuleLevel {
  /** @default 'accesses' */
  readonly measure: HeatMeasure
  /** Hot from this heat in the window on; `Number.MAX_SAFE_INTEGER` where only `enterShare` counts. */
  readonly enter: number
  /** Cooling once the heat is below this. @default 0.7 × enter */
  readonly exit: number
  /** Also hot from this share of the node's or service's accesses on, 0 to 1. */
  readonly enterShare?: number
  /** The share no longer counts below this. @default 0.7 × enterShare */
  readonly exitShare?: number
  /** A share counts only from this heat on: one access of one is no fire. @default 100 */
  readonly shareMinimum?: number
  /** Whose accesses the share is of. @default 'service' */
  readonly shareOf?: 'service' | 'node'
  /** The strategy, or a list for the hub to choose from. */
  readonly strategies: readonly StrategyTemplate[]
}

/** A strategy as a rule writes it; RedundantKeys names a number of copies, the hub their names. */
export type StrategyTemplate =
  | Exclude<Strategy, { strategy: 'RedundantKeys' }>
  | {
      readonly strategy: 'RedundantKeys'
      readonly copyCount: number
      readonly template: string
      readonly ttlJitterMs: number
    }

/** Which keys are hot when, and what is done with them. */
export interface Rule {
  readonly id: string
  /** `shadow`: decided and shown, but nothing is delivered. */
  readonly mode: 'off' | 'shadow' | 'on'
  /** The matching rule with the highest priority counts; ties go to the smaller id. */
  readonly priority: number
  /** The cluster's id, or `*`. */
  readonly redisClusterId: string
  /** The service's id, or `*`. */
  readonly serviceId: string
  readonly pattern: KeyPattern
  /** Keys of the pattern that are never hot. */
  readonly except: readonly KeyPattern[]
  readonly windowMs: number
  /** Levels by rising `enter`. */
  readonly levels: readonly RuleLevel[]
  /** A hot key stays hot at least this long. */
  readonly minHoldMs: number
  /** A value's allowed staleness, for the choice of strategy. */
  readonly maxStalenessMs?: number
  /** The hub deletes the rule at this time, in milliseconds since 1970. @default never */
  readonly until?: number
}

/** What a rule is when a user does not say. */
export const ruleDefaults = {
  mode: 'on',
  priority: 0,
  windowMs: 1000,
  minHoldMs: 10_000,
  exitShare: 0.7,
  shareMinimum: 100,
} as const
