import type { StrategyName } from '@firebreak/core'
import type { HeatMeasure } from '@firebreak/core/rules'
import type { StrategyEffect } from '../decide/strategy-trials.ts'

/**
 * Where several hubs add up the heat of keys and decide together.
 *
 * Each hub posts its whole window of every key that it counts at T/(2·hubs) or more. A key at T has at least T/hubs on
 * one of them, so somebody posts it; what the others do not post is less than T/2 in total, so a key at 1.5 T is always
 * seen at T or above. The board adds up, decides and appends the decision to an outbox in one atomic step; every hub
 * reads the outboxes in order. Decisions are on the board, so none is lost when a hub dies.
 */
export interface HeatBoard {
  /** Keys are divided into buckets; decisions within a bucket are in order. */
  readonly bucketCount: number
  bucketOf(id: string): number
  /** Reports that this hub is alive, with its totals; returns what all hubs have in common. */
  sync(hubId: string, totals: BoardTotals): Promise<BoardSync>
  /** Adds up, decides, appends. */
  post(bucket: number, settings: PostSettings, posts: readonly HeatPost[]): Promise<PostAnswer>
  /** Decisions after `after`, and the timers that this hub claims with the call. */
  poll(bucket: number, after: string): Promise<BoardNews>
  /** All hot keys of a bucket. */
  load(bucket: number): Promise<BoardTable>
}

/** Accesses in a window, by what they are summed over. */
export type BoardTotals = Readonly<Record<string, number>>

/** Times of the board are by its own clock; each answer carries its time. */
export interface BoardSync {
  readonly boardTime: number
  /** Empty if the store lost everything. */
  readonly epoch: string
  readonly rulesVersion: number
  readonly isOff: boolean
  /** The newest change of rules and switch; empty if there was none. */
  readonly newestChange: string
  readonly otherHubs: ReadonlyMap<string, BoardTotals>
}

export interface PostSettings {
  readonly hubId: string
  readonly entryTtlMs: number
  /** How long a key that the board lost stays hot without being seen. */
  readonly graceMs: number
  /** How often a hot key that nobody posts is evaluated. */
  readonly recheckMs: number
}

export interface PostLevel {
  readonly measure: HeatMeasure
  readonly enter: number
  readonly exit: number
  /** All accesses of the node or services, if the level has a share. */
  readonly all?: number
  readonly shareMinimum?: number
  readonly enterShare?: number
  readonly exitShare?: number
}

/** One hub's window of one key, and the levels to decide by. */
export interface HeatPost {
  readonly id: string
  readonly windowMs: number
  readonly sliceMs: number
  /** How long ago the newest slice began. */
  readonly headAgeMs: number
  /** Slices, newest first; empty if this hub has none for the key. */
  readonly accesses: readonly number[]
  readonly writes?: readonly number[]
  readonly bytes?: readonly number[]
  /** How long the slices stand as they are: the process that counted them reports once an interval. */
  readonly awaitedMs?: number
  readonly levels: readonly PostLevel[]
  readonly minHoldMs: number
  /** Each level's strategy as JSON. */
  readonly strategies: readonly string[]
  readonly services: readonly string[]
  /** Delay from a new key's first post to its evaluation. */
  readonly settleMs: number
  /** True if a level has a share: it is evaluated by a timer, after every hub has posted. */
  readonly hasShare?: boolean
  /** True if its timer fired. */
  readonly isDue?: boolean
  /** What a single process saw. */
  readonly claimHeat?: number
  /** What this hub's sensors reported about the key's strategy. */
  readonly effect?: StrategyEffect
  /** Pre-warming: the key becomes hot for this long, at the first level that does something. */
  readonly warm?: {
    readonly holdMs: number
    readonly reason: string
    /** Counted from 1. */
    readonly level: number
    /** As JSON. */
    readonly strategy: string
  }
  /** Another strategy for a hot key, as JSON; applies only if the key still has the one that this hub knows. */
  readonly rechoose?: {
    readonly from: string
    readonly to: string
    /** The strategy that was given up, and why; undefined: the new one merely fits the key's load better. */
    readonly givenUp?: StrategyName
    readonly why?: string
  }
  /** The key is hot here, but the board lost it. */
  readonly adopt?: Pick<BoardState, 'level' | 'since' | 'strategy' | 'heldUntil' | 'reason'>
  /** Why the key must not be hot any more, whatever its heat. */
  readonly drop?: string
}

/** What all hubs together have counted for a post's key, and what the other hubs' sensors report about its strategy. */
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
  /** Its heat when it reached its level. */
  readonly heat: number
  readonly share?: number
  /** Hot at least until then, whatever its heat: it was pre-warmed, or the board lost it for a while. */
  readonly heldUntil?: number
  /** Why it is hot, if not because of its heat. */
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
  /** Ids of the keys that this hub should evaluate. */
  readonly due: readonly string[]
  readonly decisions: readonly BoardDecision[]
  /** The sequence of each decision, without gaps unless some were trimmed or lost. */
  readonly sequences: readonly number[]
  /** Where to continue. */
  readonly last: string
}

export interface BoardTable {
  readonly boardTime: number
  readonly last: string
  readonly sequence: number
  readonly states: ReadonlyMap<string, BoardState>
}
