import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type AuditEntry, explainDiskTrouble, type HistoryEvent } from '@firebreak/core'
import { tooOldNode } from '@firebreak/core/node'
import type { Rule } from '@firebreak/core/rules'
import { StoreCallError, StoreError } from '../errors.ts'
import type { PrewarmJob } from '../prewarm/prewarm-job.ts'
import { chainEntry, formatHead, parseHead } from './audit-chain.ts'
import { extendLine, readLine } from './change-line.ts'
import { type KeptBlocks, maxTrimmedBlocks, type StoredBlock } from './heat-blocks.ts'
import {
  type AuditEnd,
  type EntryName,
  entryId,
  type HistoryQuery,
  type HubState,
  type HubStore,
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
import { migrate } from './migrate.ts'

/** The migration steps from one version of the tables to the next; the first one also creates a new store. */
const migrations = ['./schema.sql', './audit-chain.sql'].map((name) =>
  readFileSync(new URL(name, import.meta.url), 'utf8'),
)
const statements = readStatements(readFileSync(new URL('./statements.sql', import.meta.url), 'utf8'))

/** One file holds one hub's store. */
export class SqliteStore implements HubStore {
  readonly name = 'sqlite'
  readonly #database: DatabaseSync
  readonly #prepared = new Map<string, StatementSync>()
  readonly #limits: Required<StoreLimits>
  readonly #newId: () => string
  readonly #file: string
  /** The identity of the opened file: another file under its name is not ours. */
  readonly #inode: number

  constructor(file: string, options: StoreOptions = {}) {
    const { newId, ...limits } = { ...storeDefaults, ...options }
    this.#limits = limits
    this.#newId = newId
    this.#file = file
    try {
      // Private: it contains keys and who changed what. SQLite's other files get the same mode.
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      if (file !== ':memory:') {
        closeSync(openSync(file, 'a', 0o600))
        chmodSync(file, 0o600)
      }
      this.#database = openDatabase(file)
      // A machine crash may lose the last moments, but never the file; a hub crash loses nothing.
      this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000')
      migrate(this.#database, migrations)
      // Not a migration step: an index changes nothing for an older version, which may be used again.
      this.#database.exec('CREATE INDEX IF NOT EXISTS history_by_time ON history (at)')
      this.#database.exec('CREATE INDEX IF NOT EXISTS history_by_key_and_time ON history (key, at)')
      this.#database.exec('DROP INDEX IF EXISTS history_by_key')
      this.#run('raiseState', { name: 'rulesVersion', value: '0' })
      if (this.#state('epoch') === undefined) this.#run('setState', { name: 'epoch', value: newId() })
      // At the start a previous instance may still be closing it. After that nobody else uses it, and a waiting write
      // would block the whole hub: its writer retries.
      this.#database.exec('PRAGMA busy_timeout = 0')
      this.#inode = statSync(file).ino
    } catch (cause) {
      throw new StoreError(`the store ${file} cannot be opened: ${explainDiskTrouble(cause)}`, { cause })
    }
  }

  async load(): Promise<HubState> {
    const isOff = this.#state('isOff') === 'true'
    return {
      epoch: this.#state('epoch')!,
      versionFloor: Number(this.#state('versionFloor') ?? 0),
      isOff,
      rules: this.#all('listRules').map(({ rule }) => JSON.parse(String(rule)) as Rule),
      rulesVersion: this.#rulesVersion(),
      line: this.#line(),
      entries: this.#all('listEntries').map(({ stored }) => JSON.parse(String(stored)) as StoredEntry),
    }
  }

  async saveRule(rule: Rule, change?: StoreChange): Promise<number> {
    return this.#transaction(() => {
      if (!this.#begin(change)) return this.#rulesVersion()
      this.#run('saveRule', { id: rule.id, rule: JSON.stringify(rule) })
      return this.#nextRulesVersion()
    })
  }

  async deleteRule(id: string, change?: StoreChange): Promise<number> {
    return this.#transaction(() => {
      if (this.#all('getRule', { id }).length === 0 || !this.#begin(change)) return this.#rulesVersion()
      this.#run('deleteRule', { id })
      return this.#nextRulesVersion()
    })
  }

  async saveSwitch(isOff: boolean, change?: StoreChange): Promise<void> {
    this.#transaction(() => {
      if (this.#begin(change)) this.#run('setState', { name: 'isOff', value: String(isOff) })
    })
  }

  /** Adds a change to the line and the audit; false if it was already made. */
  #begin(change: StoreChange | undefined): boolean {
    const line = extendLine(this.#line(), change?.audit.at ?? 0, change?.name ?? this.#newId())
    if (line === undefined) return false
    this.#run('setState', { name: 'line', value: line.join(' ') })
    if (change !== undefined) this.#addAudit(change.audit)
    return true
  }

  #line(): readonly string[] {
    return readLine(this.#state('line'), this.#rulesVersion(), this.#state('isOff') === 'true')
  }

  async seed(rules: readonly Rule[]): Promise<boolean> {
    const { rulesVersion, isOff } = await this.load()
    if (rulesVersion > 0 || isOff) return false
    for (const rule of rules) await this.saveRule(rule)
    return true
  }

  async reserveVersions(version: number): Promise<void> {
    this.#transaction(() => this.#run('raiseState', { name: 'versionFloor', value: String(version) }))
  }

  async saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): Promise<void> {
    this.#transaction(() => {
      for (const name of removed) this.#run('deleteEntry', { name: entryId(name) })
      for (const stored of set) {
        this.#run('saveEntry', { name: entryId(stored.entry), stored: JSON.stringify(stored) })
      }
    })
  }

  async appendHistory(events: readonly HistoryEvent[]): Promise<void> {
    this.#transaction(() => {
      for (const { at, kind, redisClusterId, key, ruleId, text } of events) {
        this.#run('addHistory', { at, kind, redisClusterId, key, ruleId, text })
      }
      this.#run('trimHistory', { keep: this.#limits.maxHistory })
    })
  }

  async history(query: HistoryQuery): Promise<readonly HistoryEvent[]> {
    const { since = 0, until = Number.MAX_SAFE_INTEGER, redisClusterId = null, key = null, limit } = query
    const kinds = query.kinds === undefined ? null : JSON.stringify(query.kinds)
    const asked = { since, until, redisClusterId, ruleId: query.ruleId ?? null, kinds, limit }
    const rows = key === null ? this.#all('listHistory', asked) : this.#all('listHistoryOfKey', { ...asked, key })
    return rows.map((row) => ({ ...row })) as unknown as HistoryEvent[]
  }

  async trimHistory(before: number): Promise<void> {
    this.#transaction(() => this.#run('trimOldHistory', { before, most: maxTrimmedEvents }))
  }

  async keptHistory(): Promise<KeptHistory> {
    const { events, oldest } = this.#all('keptHistory')[0]!
    return { events: Number(events), from: oldest === null ? null : Number(oldest) }
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    this.#transaction(() => this.#addAudit(entry))
  }

  #addAudit(entry: AuditEntry): void {
    const { seq, previous, hash, before, after, ...rest } = chainEntry(parseHead(this.#state('auditHead')), entry)
    const texts = { before: JSON.stringify(before), after: JSON.stringify(after) }
    this.#run('addAudit', { ...rest, ...texts, seq, previous, hash })
    this.#run('setState', { name: 'auditHead', value: formatHead({ seq, hash }) })
    this.#run('trimAudit', { keep: this.#limits.maxAudit })
  }

  async audit(limit: number, skip = 0): Promise<readonly AuditEntry[]> {
    return this.#all('listAudit', { limit, skip }).map(({ at, who, what, before, after, seq, previous, hash }) => ({
      at: Number(at),
      who: String(who),
      what: String(what),
      before: JSON.parse(String(before)) as unknown,
      after: JSON.parse(String(after)) as unknown,
      ...(seq !== null && { seq: Number(seq), previous: String(previous), hash: String(hash) }),
    }))
  }

  async auditEnd(): Promise<AuditEnd> {
    return { head: parseHead(this.#state('auditHead')), kept: this.#limits.maxAudit }
  }

  async policiesAfter(version: number): Promise<readonly StoredPolicy[]> {
    return this.#all('listPolicies', { version }).map(({ stored }) => JSON.parse(String(stored)) as StoredPolicy)
  }

  async addPolicy(policy: StoredPolicy, audit: AuditEntry): Promise<boolean> {
    return this.#transaction(() => {
      const newest = Number(this.#all('newestPolicy')[0]!['version'])
      if (policy.version !== newest + 1) return false
      this.#run('addPolicy', { version: policy.version, stored: JSON.stringify(policy) })
      this.#run('trimPolicies', { keep: maxPolicies })
      this.#addAudit(audit)
      return true
    })
  }

  async position(source: string): Promise<string | undefined> {
    return this.#state(`position ${source}`)
  }

  async savePosition(source: string, position: string): Promise<void> {
    this.#transaction(() => this.#run('setState', { name: `position ${source}`, value: position }))
  }

  async saveJob({ id, at, ...rest }: PrewarmJob): Promise<boolean> {
    const job = JSON.stringify({ id, at, ...rest })
    const { changes } = this.#transaction(() => this.#run('saveJob', { id, at, job, keep: this.#limits.maxJobs }))
    return Number(changes) > 0
  }

  async jobs(): Promise<readonly PrewarmJob[]> {
    return this.#all('listJobs').map(toJob)
  }

  async takeJobs(now: number, leaseMs: number): Promise<readonly PrewarmJob[]> {
    return this.#transaction(() => this.#all('takeJobs', { now, until: now + leaseMs })).map(toJob)
  }

  async finishJob(id: string, next?: PrewarmJob): Promise<boolean> {
    if (next === undefined) return this.deleteJob(id)
    const { changes } = this.#transaction(() => this.#run('putOffJob', { id, at: next.at, job: JSON.stringify(next) }))
    return Number(changes) > 0
  }

  async deleteJob(id: string): Promise<boolean> {
    return Number(this.#transaction(() => this.#run('deleteJob', { id })).changes) > 0
  }

  async records(kind: string): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#all('listRecords', { kind }).map(({ name, value }) => [String(name), String(value)]))
  }

  async saveRecord(kind: string, name: string, value: string | undefined): Promise<void> {
    this.#transaction(() => {
      if (value === undefined) this.#run('deleteRecord', { kind, name })
      else this.#run('saveRecord', { kind, name, value })
    })
  }

  async saveBlock({ stepMs, at, writer, data }: StoredBlock): Promise<void> {
    this.#transaction(() => this.#run('saveBlock', { stepMs, at, writer, data }))
  }

  async blocks(stepMs: number, from: number, to: number): Promise<readonly StoredBlock[]> {
    return this.#all('listBlocks', { stepMs, from, to }).map(({ at, writer, data }) => ({
      stepMs,
      at: Number(at),
      writer: String(writer),
      data: String(data),
    }))
  }

  async trimBlocks(stepMs: number, before: number): Promise<void> {
    this.#transaction(() => this.#run('trimBlocks', { stepMs, before, most: maxTrimmedBlocks }))
  }

  async keptBlocks(): Promise<readonly KeptBlocks[]> {
    return this.#all('keptBlocks').map(({ stepMs, bytes, oldest }) => ({
      stepMs: Number(stepMs),
      bytes: Number(bytes),
      from: Number(oldest),
    }))
  }

  async close(): Promise<void> {
    if (this.#database.isOpen) this.#database.close()
  }

  #rulesVersion(): number {
    return Number(this.#state('rulesVersion'))
  }

  #nextRulesVersion(): number {
    const version = this.#rulesVersion() + 1
    this.#run('setState', { name: 'rulesVersion', value: String(version) })
    return version
  }

  #state(name: string): string | undefined {
    const row = this.#all('getState', { name })[0]
    return row === undefined ? undefined : String(row['value'])
  }

  #run(name: string, values: Record<string, SQLInputValue>): { changes: number | bigint } {
    return this.#statement(name).run(values)
  }

  #all(name: string, values: Record<string, SQLInputValue> = {}): Record<string, unknown>[] {
    return this.#statement(name).all(values) as Record<string, unknown>[]
  }

  #statement(name: string): StatementSync {
    let statement = this.#prepared.get(name)
    if (statement === undefined) {
      statement = this.#database.prepare(statements.get(name)!)
      this.#prepared.set(name, statement)
    }
    return statement
  }

  #transaction<Result>(work: () => Result): Result {
    try {
      this.#checkFile()
      this.#database.exec('BEGIN IMMEDIATE')
      const result = work()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      // A full disk has already ended it.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw new StoreCallError(error as Error, true)
    }
  }

  /** SQLite would keep writing to a file that no longer has a name and disappears with this process. */
  #checkFile(): void {
    if (statSync(this.#file).ino === this.#inode) return
    const advice = 'restart the hub to use it, or put the previous one back'
    throw new StoreError(`another file is now under the name ${this.#file}: ${advice}`)
  }
}

function openDatabase(file: string): DatabaseSync {
  // Required here, not imported: an older Node would fail on the import, before we could say what is needed.
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (sqlite === undefined) throw new Error(tooOldNode('a data folder') ?? 'this Node was built without node:sqlite')
  return new sqlite.DatabaseSync(file)
}

function toJob({ job }: Record<string, unknown>): PrewarmJob {
  return JSON.parse(String(job)) as PrewarmJob
}

/** SQL statements by the names written above them. */
function readStatements(text: string): ReadonlyMap<string, string> {
  const parts = text.split(/^-- name: (\w+)$/m).slice(1)
  return new Map(parts.flatMap((part, index) => (index % 2 === 0 ? [[part, parts[index + 1]!.trim()] as const] : [])))
}
