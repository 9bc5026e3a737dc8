import { type AuditEntry, type AuditHead, type HistoryEvent, systemRuntime, type TableEntry } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { HeatBoard } from '../board/heat-board.ts'
import type { LaneRelay } from '../lane/lane-relay.ts'
import type { PrewarmJobs } from '../prewarm/prewarm-job.ts'
import type { HeatBlocks } from './heat-blocks.ts'

/** What a hub starts from. */
export interface HubState {
  /** Names this store; a store that was reset has another. */
  readonly epoch: string
  /** No version up to this one may be given out again. */
  readonly versionFloor: number
  readonly isOff: boolean
  readonly rules: readonly Rule[]
  /** Counts the changes of the rules. */
  readonly rulesVersion: number
  /** The newest changes of rules and switch, oldest first (see `change-line.ts`); empty where there was none. */
  readonly line: readonly string[]
  /** Keys that were hot; those whose `until` has passed may be among them. */
  readonly entries: readonly StoredEntry[]
}

/** A line of the strategy table and the services it was sent to. */
export interface StoredEntry {
  readonly entry: TableEntry
  readonly services: readonly string[]
}

/** One version of the rate-limit policy, as it is kept. */
export interface StoredPolicy {
  readonly version: number
  readonly loadedAtMs: number
  readonly origin: string
  /** A JSON document that names no file. */
  readonly document: string
}

/** How many versions of the policy are kept. */
export const maxPolicies = 50

/** Who changes what, written in one step with the change itself. */
export interface StoreChange {
  /** Names the change: the same one sent twice is made once. */
  readonly name: string
  readonly audit: AuditEntry
  /** The newest change that the hub knows of: a shared store that does not have it refuses, since it went back. */
  readonly after?: string
}

/** What a hub writes into a shared store that went back. */
export interface RestoredState extends Pick<HubState, 'rules' | 'rulesVersion' | 'isOff' | 'line'> {
  /** The newest change that the store had when it was looked at. */
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

/** How much of the decisions is kept. */
export interface KeptHistory {
  readonly events: number
  /** The time of the oldest; null if there is none. */
  readonly from: number | null
}

/** Events that one trimming deletes at most, so that it holds nobody up. */
export const maxTrimmedEvents = 2000

/** Whether an event is asked for. */
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
 * What outlives a hub: rules, history, blocks of heat, audit, the switch, the table, sources' positions and pre-warm jobs. All stores pass one
 * contract suite (`store/store-contract.test.ts`); calls may come while earlier ones are under way, and take effect in
 * their order.
 */
export interface HubStore extends PrewarmJobs, HeatBlocks {
  /** For logs and health: `memory`, `sqlite` …. */
  readonly name: string
  load(): Promise<HubState>
  /** Adds or replaces a rule; gives the new version of the rules. */
  saveRule(rule: Rule, change?: StoreChange): Promise<number>
  /** Gives the new version; the same one where there was no such rule. */
  deleteRule(id: string, change?: StoreChange): Promise<number>
  saveSwitch(isOff: boolean, change?: StoreChange): Promise<void>
  /** Fills a store that never had a rule or a thrown switch; false where it had. */
  seed(rules: readonly Rule[]): Promise<boolean>
  /** From now on no version up to `version` is given out again. */
  reserveVersions(version: number): Promise<void>
  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): Promise<void>
  /** `batch` rises with each call of one writer; one that was written is not written again. */
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
  /** Where several hubs share the store: the board on which they add up heat and decide together. */
  readonly board?: HeatBoard
  /** Where several hubs share the store: carries invalidations between them. */
  readonly lane?: LaneRelay
  /** Writes rules and switch into a shared store that went back or lost everything; false where another hub did. */
  restore?(state: RestoredState): Promise<boolean>
  /** How far a source of changes was read, as it wrote it itself; undefined where it never did. */
  position(source: string): Promise<string | undefined>
  savePosition(source: string, position: string): Promise<void>
  /** The kept versions of the rate-limit policy above `version`, oldest first. */
  policiesAfter(version: number): Promise<readonly StoredPolicy[]>
  /** Adds a version with its audit entry; false, and nothing is done, where the newest is not the one before it. */
  addPolicy(policy: StoredPolicy, audit: AuditEntry): Promise<boolean>
  /** Small texts of a kind by their names, such as tokens' hashes. */
  records(kind: string): Promise<ReadonlyMap<string, string>>
  /** Undefined: the record goes. */
  saveRecord(kind: string, name: string, value: string | undefined): Promise<void>
  close(): Promise<void>
}

/** Which of a writer's batches of events this is. */
export interface HistoryBatch {
  readonly writer: string
  readonly number: number
}

/** Names an entry of the table: one key may have one per rule. */
export interface EntryName {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly ruleId: string
}

/** Unlike that of any other entry. */
export function entryId({ redisClusterId, key, ruleId }: EntryName): string {
  return JSON.stringify([redisClusterId, ruleId, key])
}

export interface AuditEnd {
  /** Undefined where nothing was audited yet. */
  readonly head: AuditHead | undefined
  readonly kept: number
}

/** How a store is opened. */
export interface StoreOptions extends StoreLimits {
  /** Makes the store's name, once. @default a random one */
  readonly newId?: () => string
}

/** How much is kept. */
export interface StoreLimits {
  /** A bound beside the age at which events are trimmed (`history/event-quota.ts`). @default 500000 */
  readonly maxHistory?: number
  /** @default 100000 */
  readonly maxAudit?: number
  /** Pre-warm jobs to come. @default 1000 */
  readonly maxJobs?: number
}

export const storeDefaults = {
  maxHistory: 500_000,
  maxAudit: 100_000,
  maxJobs: 1000,
  newId: systemRuntime.newId,
} as const
