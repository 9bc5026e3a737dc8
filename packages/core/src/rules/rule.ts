import type { Strategy } from '../strategy/strategy.ts'
import type { RuleRollout } from './rollout.ts'

/** Which keys a rule applies to: exactly one kind of pattern. */
export type KeyPattern =
  | { readonly kind: 'exact'; readonly keys: readonly string[] }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'suffix'; readonly suffix: string }
  | { readonly kind: 'glob'; readonly glob: string }
  | { readonly kind: 'regex'; readonly regex: string }

/** What a level measures in the window. */
export type HeatMeasure = 'accesses' | 'reads' | 'writes' | 'bytes'

/** One level of heat and what is done at it. */
export interface RuleLevel {
  /**
   * Hot by what the key costs its node and not by a number: the hub keeps computing `enter` and `exit`
   * (`docs/guides/autopilot.md`), and the ones here are never reached.
   */
  readonly auto?: true
  /** @default 'accesses' */
  readonly measure: HeatMeasure
  /** Hot from this heat in the window; `Number.MAX_SAFE_INTEGER` if only `enterShare` counts. */
  readonly enter: number
  /** Cooling once heat drops below this. @default 0.7 × enter */
  readonly exit: number
  /** Also hot from this share of the node's or service's accesses, 0 to 1. */
  readonly enterShare?: number
  /** The share stops counting below this. @default 0.7 × enterShare */
  readonly exitShare?: number
  /** A share only counts from this heat: one access out of one is not a hot key. @default 100 */
  readonly shareMinimum?: number
  /** What the share is a share of. @default 'service' */
  readonly shareOf?: 'service' | 'node'
  /** The strategy, or several for the hub to choose from. */
  readonly strategies: readonly StrategyTemplate[]
}

/** A strategy as written in a rule; RedundantKeys gives the number of copies, and the hub names them. */
export type StrategyTemplate =
  | Exclude<Strategy, { strategy: 'RedundantKeys' }>
  | {
      readonly strategy: 'RedundantKeys'
      readonly copyCount: number
      readonly template: string
      readonly ttlJitterMs: number
      /** Instead of `copyCount`: this many copies for each node. */
      readonly copiesPerNode?: number
      /** @default 'renewed' */
      readonly ttl?: 'renewed' | 'key'
    }

/** Which keys are hot when, and what is done about them. */
export interface Rule {
  readonly id: string
  /** `shadow`: decided and shown, but nothing is delivered. */
  readonly mode: 'off' | 'shadow' | 'on'
  /** The matching rule with the highest priority applies; ties go to the smaller id. */
  readonly priority: number
  /** The cluster's id, or `*`. */
  readonly redisClusterId: string
  /** The service's id, or `*`. */
  readonly serviceId: string
  readonly pattern: KeyPattern
  /** Keys that match the pattern but are never hot. */
  readonly except: readonly KeyPattern[]
  readonly windowMs: number
  /** Levels in ascending order of `enter`. */
  readonly levels: readonly RuleLevel[]
  /** A hot key stays hot at least this long. */
  readonly minHoldMs: number
  /** The staleness that values may have, for the choice of strategy. */
  readonly maxStalenessMs?: number
  /** The hub deletes the rule at this time, in milliseconds since 1970. @default never */
  readonly until?: number
  /** The fraction of the processes that have the rule. @default all */
  readonly rollout?: RuleRollout
}

/** The values that a rule has by default. */
export const ruleDefaults = {
  mode: 'on',
  priority: 0,
  windowMs: 1000,
  minHoldMs: 10_000,
  exitShare: 0.7,
  shareMinimum: 100,
} as const
