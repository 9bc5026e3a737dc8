import type { Calendar } from '../calendar/calendar.ts'
import type { PolicyRule } from './policy.ts'

/** The counter of one rule that applies to a call. */
export interface RuleCounter {
  /** The rule's identity and the values that it counts by, escaped. */
  readonly key: string
  readonly rule: PolicyRule
  /** True if the call is denied when this counter is over. */
  readonly denies: boolean
}

/** One call against the counters of the rules that apply to it. */
export interface StoreCall {
  /** `look` only reads, `add` counts on all, `through` counts on all unless the call is denied. */
  readonly mode: 'look' | 'add' | 'through'
  readonly counters: readonly RuleCounter[]
  /** How many of them decide: those before the first direct rule. */
  readonly deciding: number
  /** Whether the call is denied when none of those is over. */
  readonly isDeniedOtherwise: boolean
  /** The policy's days. */
  readonly days: Calendar
}

/** One counter's state before the call was counted. */
export interface CounterState {
  readonly isOver: boolean
  /** Within the rule's time. */
  readonly used: number
  /** Within the day, for base rules. */
  readonly usedToday: number
}

/** A store's result. */
export interface StoreAnswer {
  readonly isCounted: boolean
  readonly states: readonly CounterState[]
}

/** Where the counters of rules live; each call is one atomic step. */
export interface RuleStore {
  decide(call: StoreCall): StoreAnswer | Promise<StoreAnswer>
  /** Takes back entries of a counter, once per request id if one is given; false if the id was used before. */
  takeBack(
    counter: RuleCounter,
    entries: number,
    requestId: string | undefined,
    days: Calendar,
  ): boolean | Promise<boolean>
  /** Throws if the store cannot be reached. */
  checkAlive(): void | Promise<void>
}

/** The rule's time in milliseconds. */
export function timeMs(rule: PolicyRule): number {
  return rule.timeSeconds * 1000
}
