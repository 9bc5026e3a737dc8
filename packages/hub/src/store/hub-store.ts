import { type AuditEntry, type AuditHead, type HistoryEvent, systemRuntime, type TableEntry } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { NoticeClaims } from '../alarms/fleet-notices.ts'
import type { HeatBoard } from '../board/heat-board.ts'
import type { LaneRelay } from '../lane/lane-relay.ts'
import type { PrewarmJobs } from '../prewarm/prewarm-job.ts'
import type { HeatBlocks } from './heat-blocks.ts'

/** The state that a hub starts from. */
export interface HubState {
  /** Names this store; a reset store gets another name. */
  readonly epoch: string
  /** No version up to this one may be used again. */
  readonly versionFloor: number
  readonly isOff: boolean
  readonly rules: readonly Rule[]
  /** Counts the changes of the rules. */
  readonly rulesVersion: number
  /** The newest changes of rules and switch, oldest first (see `change-line.ts`); empty if there was none. */
  readonly line: readonly string[]
  /** Keys that were hot; those whose `until` has passed may be among them. */
  readonly entries: readonly StoredEntry[]
}

/** A line of the strategy table and the services it was sent to. */
export interface StoredEntry {
  readonly entry: TableEntry
  readonly services: readonly string[]
}

/** One version of the rate-limit policy, as stored. */
export interface StoredPolicy {
  readonly version: number
  readonly loadedAtMs: number
  readonly origin: string
  /** A JSON document that refers to no files. */
  readonly document: string
}

/** How many versions of the policy are kept. */
export const maxPolicies = 50

/** Who changes what, written atomically with the change itself. */
export interface StoreChange {
  /** Identifies the change: one sent twice is made once. */
  readonly name: string
  readonly audit: AuditEntry
  /** The newest change that the hub knows: a shared store without it was rolled back, and refuses. */
  readonly after?: string
}

/** What a hub writes into a shared store that was rolled back. */
export interface RestoredState extends Pick<HubState, 'rules' | 'rulesVersion' | 'isOff' | 'line'> {
  /** The newest change that the store had when it was read. */
  readonly instead: string
}

export interface HistoryQuery {
  /** Only events from this time on … */
  readonly since?: number
  /** … and before this. */
  readonly until?: number
  readonly redisClusterId?: string
  /** The key's text. */
  readonly key?: string
  readonly ruleId?: string
  /** Only events of these kinds. */
  readonly kinds?: readonly HistoryEvent['kind'][]
  readonly limit: number
}

/** How many decisions are kept. */
export interface KeptHistory {
  readonly events: number
  /** The time of the oldest; null if there is none. */
  readonly from: number | null
}

/** Maximum number of events deleted by one trim, so that it delays nobody. */
export const maxTrimmedEvents = 2000

/** Whether an event matches the query. */
export function isAskedFor(event: HistoryEvent, query: HistoryQuery): boolean {
  const { since = 0, until = Number.POSITIVE_INFINITY, redisClusterId, key, ruleId, kinds } = query
  return (
    event.at >= since &&
    event.at < until &&
    (redisClusterId === undefined || event.redisClusterId === redisClusterId) &&
    (key === undefined || event.key === key) &&
    (ruleId === undefined || event.ruleId === ruleId) &&
    (kinds === undefined || kinds.includes(event.kind))
  )
}

/**
 * What outlives a hub: rules, history, heat blocks, audit, the switch, the table, sources' positions and pre-warm jobs.
 * All stores pass one contract suite (`store/store-contract.test.ts`); calls may overlap and take effect in order.
 */
export interface HubStore extends PrewarmJobs, HeatBlocks {
  /** For logs and health: `memory`, `sqlite` …. */
  readonly name: string
  /** Where it is, without its password; undefined if it is on this machine. */
  readonly address?: string | undefined
  load(): Promise<HubState>
  /** Adds or replaces a rule; returns the new version of the rules. */
  saveRule(rule: Rule, change?: StoreChange): Promise<number>
  /** Returns the new version, unchanged if there was no such rule. */
  deleteRule(id: string, change?: StoreChange): Promise<number>
  saveSwitch(isOff: boolean, change?: StoreChange): Promise<void>
  /** Fills a store that never had a rule or a thrown switch; false if it had. */
  seed(rules: readonly Rule[]): Promise<boolean>
  /** From now on no version up to `version` is used again. */
  reserveVersions(version: number): Promise<void>
  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): Promise<void>
  /** `batch` rises with each call of a writer; a written one is not written again. */
  appendHistory(events: readonly HistoryEvent[], batch?: HistoryBatch): Promise<void>
  /** Newest first. */
  history(query: HistoryQuery): Promise<readonly HistoryEvent[]>
  /** Forgets the oldest events that happened before a moment, at most `maxTrimmedEvents`. */
  trimHistory(before: number): Promise<void>
  keptHistory(): Promise<KeptHistory>
  /** Chains the entry to the one before it (see `audit-chain.ts`). */
  appendAudit(entry: AuditEntry): Promise<void>
  /** Newest first, without the `skip` newest. */
  audit(limit: number, skip?: number): Promise<readonly AuditEntry[]>
  /** The end of the audit's chain, kept apart from its entries, and how many of these are kept. */
  auditEnd(): Promise<AuditEnd>
  /** If several hubs share the store: the board on which they add up heat and decide together. */
  readonly board?: HeatBoard
  /** If several hubs share the store: carries invalidations between them. */
  readonly lane?: LaneRelay
  /** If several hubs share the store: which of them sends a notice that concerns all. */
  readonly notices?: NoticeClaims
  /**
   * Writes rules and switch into a shared store that was rolled back or lost everything; false if another hub already
   * did.
   */
  restore?(state: RestoredState): Promise<boolean>
  /** How far a source of changes was read, in its own format; undefined if never saved. */
  position(source: string): Promise<string | undefined>
  savePosition(source: string, position: string): Promise<void>
  /** The kept versions of the rate-limit policy above `version`, oldest first. */
  policiesAfter(version: number): Promise<readonly StoredPolicy[]>
  /** Adds a version with its audit entry; false, without doing anything, if the newest is not its predecessor. */
  addPolicy(policy: StoredPolicy, audit: AuditEntry): Promise<boolean>
  /** Small texts of one kind by name, such as tokens' hashes. */
  records(kind: string): Promise<ReadonlyMap<string, string>>
  /** Undefined: the record is deleted. */
  saveRecord(kind: string, name: string, value: string | undefined): Promise<void>
  close(): Promise<void>
}

/** Which of a writer's batches of events this is. */
export interface HistoryBatch {
  readonly writer: string
  readonly number: number
}

/** Identifies an entry of the table: a key may have one per rule. */
export interface EntryName {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly ruleId: string
}

/** Different from that of any other entry. */
export function entryId({ redisClusterId, key, ruleId }: EntryName): string {
  return JSON.stringify([redisClusterId, ruleId, key])
}

export interface AuditEnd {
  /** Undefined if nothing has been audited yet. */
  readonly head: AuditHead | undefined
  readonly kept: number
}

/** How a store is opened. */
export interface StoreOptions extends StoreLimits {
  /** Creates the store's name, once. @default a random one */
  readonly newId?: () => string
}

/** How much is kept. */
export interface StoreLimits {
  /** A bound in addition to the age at which events are trimmed (`history/event-quota.ts`). @default 500000 */
  readonly maxHistory?: number
  /** @default 100000 */
  readonly maxAudit?: number
  /** Pending pre-warm jobs. @default 1000 */
  readonly maxJobs?: number
}

export const storeDefaults = {
  maxHistory: 500_000,
  maxAudit: 100_000,
  maxJobs: 1000,
  newId: systemRuntime.newId,
} as const
