import type { StrategyName } from '@firebreak/core'
import type { HeatMeasure } from '@firebreak/core/rules'
import type { StrategyEffect } from '../decide/strategy-trials.ts'

/**
 * Where several hubs add up the heat of keys and decide together.
 *
 * Each hub posts its whole window of every key that it counts at T/(2·hubs) or more. A key at T has T/hubs on one of them at
 * least, so somebody posts it; what the others keep to themselves is less than T/2 in all, so a key at 1.5 T is always seen
 * at T or above. The board adds up, decides and appends the decision to an outbox in one atomic step; every hub reads the
 * outboxes in order. What is decided is on the board, so a hub that dies takes no decision with it.
 */
export interface HeatBoard {
  /** Keys fall into buckets; what is decided in one is decided in order. */
  readonly bucketCount: number
  bucketOf(id: string): number
  /** Tells that this hub lives, and what it counted in all; gives what is common. */
  sync(hubId: string, totals: BoardTotals): Promise<BoardSync>
  /** Adds up, decides, appends. */
  post(bucket: number, settings: PostSettings, posts: readonly HeatPost[]): Promise<PostAnswer>
  /** What was decided after `after`, and the timers that this hub claims with it. */
  poll(bucket: number, after: string): Promise<BoardNews>
  /** All hot keys of a bucket. */
  load(bucket: number): Promise<BoardTable>
}

/** Accesses in a window, by the name of what they are summed over. */
export type BoardTotals = Readonly<Record<string, number>>

/** Times of the board are on its own clock; each answer says what it showed. */
export interface BoardSync {
  readonly boardTime: number
  /** Empty where the store lost everything. */
  readonly epoch: string
  readonly rulesVersion: number
  readonly isOff: boolean
  /** The newest change of rules and switch; empty where there was none. */
  readonly newestChange: string
  readonly otherHubs: ReadonlyMap<string, BoardTotals>
}

export interface PostSettings {
  readonly hubId: string
  readonly entryTtlMs: number
  /** How long a key that the board lost is held unseen. */
  readonly graceMs: number
  /** How often a hot key that nobody posts is looked at. */
  readonly recheckMs: number
}

export interface PostLevel {
  readonly measure: HeatMeasure
  readonly enter: number
  readonly exit: number
  /** All accesses of the node or services, where the level has a share. */
  readonly all?: number
  readonly shareMinimum?: number
  readonly enterShare?: number
  readonly exitShare?: number
}

/** One hub's window of one key, and by what to decide. */
export interface HeatPost {
  readonly id: string
  readonly windowMs: number
  readonly sliceMs: number
  /** How long ago the newest slice began. */
  readonly headAgeMs: number
  /** Slices, newest first; empty where this hub has none of the key. */
  readonly accesses: readonly number[]
  readonly writes?: readonly number[]
  readonly bytes?: readonly number[]
  readonly levels: readonly PostLevel[]
  readonly minHoldMs: number
  /** Each level's strategy as JSON. */
  readonly strategies: readonly string[]
  readonly services: readonly string[]
  /** A new key is evaluated so long after its first post. */
  readonly settleMs: number
  /** True where a level has a share: it is looked at when a timer comes, after everybody has told. */
  readonly hasShare?: boolean
  /** True where its timer came. */
  readonly isDue?: boolean
  /** What one process alone saw. */
  readonly claimHeat?: number
  /** What this hub's sensors said of the key's strategy. */
  readonly effect?: StrategyEffect
  /** The key is to be hot before it is, for so long, at the first level that does something. */
  readonly warm?: {
    readonly holdMs: number
    readonly reason: string
    /** Counted from 1. */
    readonly level: number
    /** As JSON. */
    readonly strategy: string
  }
  /** Another strategy for a hot key, as JSON, where it still has the one that this hub knows. */
  readonly rechoose?: {
    readonly from: string
    readonly to: string
    /** Which one was given up, and why; undefined: the other one fits the key's load better. */
    readonly givenUp?: StrategyName
    readonly why?: string
  }
  /** The key is hot here, but the board lost it. */
  readonly adopt?: Pick<BoardState, 'level' | 'since' | 'strategy' | 'heldUntil' | 'reason'>
  /** Why the key is to be hot no longer, whatever its heat. */
  readonly drop?: string
}

/** What all hubs together have of a post's key, and what the sensors of the other hubs say of its strategy. */
export interface PostedHeat {
  readonly accesses: number
  readonly writes: number
  readonly bytes: number
  readonly othersEffect: StrategyEffect
}

export interface PostAnswer {
  readonly boardTime: number
  readonly decisionCount: number
  readonly heats: readonly PostedHeat[]
}

/** A key's state on the board. */
export interface BoardState {
  /** Counted from 1. */
  readonly level: number
  readonly since: number
  readonly levelSince: number
  readonly until: number
  readonly strategy: string
  readonly services: readonly string[]
  /** What it had when it reached its level. */
  readonly heat: number
  readonly share?: number
  /** Hot until then at least, whatever its heat: pre-warmed, or lost by the board for a while. */
  readonly heldUntil?: number
  /** Why it is hot, where that is not its heat. */
  readonly reason?: string
  /** Strategies that did not help this key, and when that was found. */
  readonly givenUp?: Readonly<Partial<Record<StrategyName, number>>>
}

export interface BoardDecision {
  readonly id: string
  readonly kind:
    | 'hot'
    | 'prewarm'
    | 'strategy'
    | 'rechosen'
    | 'extended'
    | 'services'
    | 'restored'
    | 'cooled'
    | 'rollback'
  readonly at: number
  /** The hub whose post led to it. */
  readonly by: string
  readonly heat: number
  readonly share?: number
  readonly isClaim: boolean
  readonly text?: string
  readonly state: BoardState
}

export interface BoardNews {
  readonly boardTime: number
  /** Ids of keys that this hub is to evaluate. */
  readonly due: readonly string[]
  readonly decisions: readonly BoardDecision[]
  /** The sequence of each decision: they have no gap, unless some were trimmed or lost. */
  readonly sequences: readonly number[]
  /** Where to go on. */
  readonly last: string
}

export interface BoardTable {
  readonly boardTime: number
  readonly last: string
  readonly sequence: number
  readonly states: ReadonlyMap<string, BoardState>
}
