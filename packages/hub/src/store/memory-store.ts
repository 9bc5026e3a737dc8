import type { AuditEntry, AuditHead, HistoryEvent } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { PrewarmJob } from '../prewarm/prewarm-job.ts'
import { type ChainedEntry, chainEntry } from './audit-chain.ts'
import { extendLine } from './change-line.ts'
import type { KeptBlocks, StoredBlock } from './heat-blocks.ts'
import {
  type AuditEnd,
  type EntryName,
  entryId,
  type HistoryQuery,
  type HubState,
  type HubStore,
  isAskedFor,
  type KeptHistory,
  maxPolicies,
  maxTrimmedEvents,
  type StoreChange,
  type StoredEntry,
  type StoredPolicy,
  type StoreLimits,
  type StoreOptions,
  storeDefaults,
} from './hub-store.ts'

/** A store that lasts as long as its process; each has its own epoch. */
export class MemoryStore implements HubStore {
  readonly name = 'memory'
  readonly #epoch: string
  readonly #rules = new Map<string, Rule>()
  readonly #entries = new Map<string, StoredEntry>()
  readonly #positions = new Map<string, string>()
  readonly #records = new Map<string, Map<string, string>>()
  readonly #limits: Required<StoreLimits>
  #history: HistoryEvent[] = []
  #policies: StoredPolicy[] = []
  #audit: ChainedEntry[] = []
  #auditHead: AuditHead | undefined
  #rulesVersion = 0
  #versionFloor = 0
  #isOff = false
  #line: readonly string[] = []
  /** Jobs, and when each is due. */
  readonly #jobs = new Map<string, { readonly job: PrewarmJob; readonly dueAt: number }>()
  /** Heat blocks by length of points, start and writer. */
  readonly #blocks = new Map<string, StoredBlock>()
  readonly #newId: () => string

  constructor(options: StoreOptions = {}) {
    const { newId, ...limits } = { ...storeDefaults, ...options }
    this.#epoch = newId()
    this.#newId = newId
    this.#limits = limits
  }

  async load(): Promise<HubState> {
    return {
      epoch: this.#epoch,
      versionFloor: this.#versionFloor,
      isOff: this.#isOff,
      rules: [...this.#rules.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      rulesVersion: this.#rulesVersion,
      line: this.#line,
      entries: [...this.#entries.values()],
    }
  }

  async saveRule(rule: Rule, change?: StoreChange): Promise<number> {
    if (!this.#begin(change)) return this.#rulesVersion
    this.#rules.set(rule.id, rule)
    return ++this.#rulesVersion
  }

  async deleteRule(id: string, change?: StoreChange): Promise<number> {
    if (!this.#rules.has(id) || !this.#begin(change)) return this.#rulesVersion
    this.#rules.delete(id)
    return ++this.#rulesVersion
  }

  async saveSwitch(isOff: boolean, change?: StoreChange): Promise<void> {
    if (this.#begin(change)) this.#isOff = isOff
  }

  /** Adds a change to the line and the audit; false if it was already made. */
  #begin(change: StoreChange | undefined): boolean {
    const line = extendLine(this.#line, change?.audit.at ?? 0, change?.name ?? this.#newId())
    if (line === undefined) return false
    this.#line = line
    if (change !== undefined) this.#addAudit(change.audit)
    return true
  }

  async seed(rules: readonly Rule[]): Promise<boolean> {
    if (this.#rulesVersion > 0 || this.#isOff) return false
    for (const rule of rules) await this.saveRule(rule)
    return true
  }

  async reserveVersions(version: number): Promise<void> {
    this.#versionFloor = Math.max(this.#versionFloor, version)
  }

  async policiesAfter(version: number): Promise<readonly StoredPolicy[]> {
    return this.#policies.filter((policy) => policy.version > version)
  }

  async addPolicy(policy: StoredPolicy, audit: AuditEntry): Promise<boolean> {
    if (policy.version !== (this.#policies.at(-1)?.version ?? 0) + 1) return false
    this.#policies = [...this.#policies, policy].slice(-maxPolicies)
    await this.appendAudit(audit)
    return true
  }

  async saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): Promise<void> {
    for (const name of removed) this.#entries.delete(entryId(name))
    for (const stored of set) this.#entries.set(entryId(stored.entry), stored)
  }

  async appendHistory(events: readonly HistoryEvent[]): Promise<void> {
    this.#history.push(...events)
    const { maxHistory } = this.#limits
    // Cut in large steps: a slice per event would copy the whole list each time.
    if (this.#history.length > maxHistory * 1.1) this.#history = this.#history.slice(-maxHistory)
  }

  async history(query: HistoryQuery): Promise<readonly HistoryEvent[]> {
    const found: HistoryEvent[] = []
    const oldest = Math.max(0, this.#history.length - this.#limits.maxHistory)
    for (let index = this.#history.length - 1; index >= oldest && found.length < query.limit; index--) {
      const event = this.#history[index]!
      if (isAskedFor(event, query)) found.push(event)
    }
    return found
  }

  async trimHistory(before: number): Promise<void> {
    const kept = this.#history.findIndex(({ at }) => at >= before)
    this.#history.splice(0, Math.min(kept < 0 ? this.#history.length : kept, maxTrimmedEvents))
  }

  async keptHistory(): Promise<KeptHistory> {
    const events = Math.min(this.#history.length, this.#limits.maxHistory)
    return { events, from: this.#history.at(-events)?.at ?? null }
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    this.#addAudit(entry)
  }

  #addAudit(entry: AuditEntry): void {
    const chained = chainEntry(this.#auditHead, entry)
    this.#auditHead = { seq: chained.seq, hash: chained.hash }
    this.#audit.push(chained)
    if (this.#audit.length > this.#limits.maxAudit) this.#audit.shift()
  }

  async audit(limit: number, skip = 0): Promise<readonly AuditEntry[]> {
    return this.#audit.toReversed().slice(skip, skip + limit)
  }

  async auditEnd(): Promise<AuditEnd> {
    return { head: this.#auditHead, kept: this.#limits.maxAudit }
  }

  async position(source: string): Promise<string | undefined> {
    return this.#positions.get(source)
  }

  async savePosition(source: string, position: string): Promise<void> {
    this.#positions.set(source, position)
  }

  async records(kind: string): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#records.get(kind))
  }

  async saveRecord(kind: string, name: string, value: string | undefined): Promise<void> {
    const records = this.#records.get(kind) ?? new Map<string, string>()
    this.#records.set(kind, records)
    if (value === undefined) records.delete(name)
    else records.set(name, value)
  }

  async saveJob(job: PrewarmJob): Promise<boolean> {
    if (this.#jobs.size >= this.#limits.maxJobs && !this.#jobs.has(job.id)) return false
    this.#jobs.set(job.id, { job, dueAt: job.at })
    return true
  }

  async jobs(): Promise<readonly PrewarmJob[]> {
    return [...this.#jobs.values()].map(({ job }) => job).sort((a, b) => a.at - b.at)
  }

  async takeJobs(now: number, leaseMs: number): Promise<readonly PrewarmJob[]> {
    const due = (await this.jobs()).filter(({ id }) => this.#jobs.get(id)!.dueAt <= now)
    for (const job of due) this.#jobs.set(job.id, { job, dueAt: now + leaseMs })
    return due
  }

  async finishJob(id: string, next?: PrewarmJob): Promise<boolean> {
    if (next === undefined || !this.#jobs.has(id)) return this.#jobs.delete(id)
    this.#jobs.set(id, { job: next, dueAt: next.at })
    return true
  }

  async deleteJob(id: string): Promise<boolean> {
    return this.#jobs.delete(id)
  }

  async saveBlock(block: StoredBlock): Promise<void> {
    this.#blocks.set(`${block.stepMs} ${block.at} ${block.writer}`, block)
  }

  async blocks(stepMs: number, from: number, to: number): Promise<readonly StoredBlock[]> {
    return [...this.#blocks.values()]
      .filter((block) => block.stepMs === stepMs && block.at >= from && block.at < to)
      .sort((a, b) => a.at - b.at || (a.writer < b.writer ? -1 : 1))
  }

  async trimBlocks(stepMs: number, before: number): Promise<void> {
    for (const [id, block] of this.#blocks) if (block.stepMs === stepMs && block.at < before) this.#blocks.delete(id)
  }

  async keptBlocks(): Promise<readonly KeptBlocks[]> {
    const kept = new Map<number, KeptBlocks>()
    for (const { stepMs, at, data } of this.#blocks.values()) {
      const { bytes = 0, from = at } = kept.get(stepMs) ?? {}
      kept.set(stepMs, { stepMs, bytes: bytes + data.length, from: Math.min(from, at) })
    }
    return [...kept.values()].sort((a, b) => a.stepMs - b.stepMs)
  }

  async close(): Promise<void> {}
}
