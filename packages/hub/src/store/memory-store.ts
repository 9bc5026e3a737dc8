import type { AuditEntry, HistoryEvent, Rule } from '@firebreak/core'
import { readLine } from './change-line.ts'
import {
  type EntryName,
  type HistoryQuery,
  type HubState,
  type HubStore,
  maxPolicies,
  type StoreChange,
  type StoredEntry,
  type StoredPolicy,
  type StoreLimits,
  type StoreOptions,
  storeDefaults,
} from './hub-store.ts'

/** A store that forgets everything with its process; each has an epoch of its own. */
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
  #audit: AuditEntry[] = []
  #rulesVersion = 0
  #versionFloor = 0
  #isOff = false

  constructor(options: StoreOptions = {}) {
    const { newId, ...limits } = { ...storeDefaults, ...options }
    this.#epoch = newId()
    this.#limits = limits
  }

  async load(): Promise<HubState> {
    return {
      epoch: this.#epoch,
      versionFloor: this.#versionFloor,
      isOff: this.#isOff,
      rules: [...this.#rules.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      rulesVersion: this.#rulesVersion,
      line: readLine(undefined, this.#rulesVersion, this.#isOff),
      entries: [...this.#entries.values()],
    }
  }

  async saveRule(rule: Rule, change?: StoreChange): Promise<number> {
    if (change !== undefined) await this.appendAudit(change.audit)
    this.#rules.set(rule.id, rule)
    return ++this.#rulesVersion
  }

  async deleteRule(id: string, change?: StoreChange): Promise<number> {
    if (!this.#rules.delete(id)) return this.#rulesVersion
    this.#rulesVersion++
    if (change !== undefined) await this.appendAudit(change.audit)
    return this.#rulesVersion
  }

  async saveSwitch(isOff: boolean, change?: StoreChange): Promise<void> {
    if (change !== undefined) await this.appendAudit(change.audit)
    this.#isOff = isOff
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
    for (const name of removed) this.#entries.delete(nameOf(name))
    for (const stored of set) this.#entries.set(nameOf(stored.entry), stored)
  }

  async appendHistory(events: readonly HistoryEvent[]): Promise<void> {
    this.#history.push(...events)
    const { maxHistory } = this.#limits
    // Cut in large steps: a slice per event would copy the whole list each time.
    if (this.#history.length > maxHistory * 1.1) this.#history = this.#history.slice(-maxHistory)
  }

  async history({ since = 0, redisClusterId, key, limit }: HistoryQuery): Promise<readonly HistoryEvent[]> {
    return this.#history
      .slice(-this.#limits.maxHistory)
      .filter(
        (event) =>
          event.at >= since &&
          (redisClusterId === undefined || event.redisClusterId === redisClusterId) &&
          (key === undefined || event.key === key),
      )
      .reverse()
      .slice(0, limit)
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    this.#audit.push(entry)
    if (this.#audit.length > this.#limits.maxAudit) this.#audit.shift()
  }

  async audit(limit: number): Promise<readonly AuditEntry[]> {
    return this.#audit.toReversed().slice(0, limit)
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

  async close(): Promise<void> {}
}

function nameOf({ redisClusterId, key, ruleId }: EntryName): string {
  return `${redisClusterId}\u0000${ruleId}\u0000${key}`
}
