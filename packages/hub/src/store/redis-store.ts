import type { AuditEntry, Clock, HistoryEvent } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { loadScript, type Redis, type RedisReply } from '@firebreak/redis'
import type { NoticeClaims } from '../alarms/fleet-notices.ts'
import type { HeatBoard } from '../board/heat-board.ts'
import { RedisHeatBoard, type RedisHeatBoardOptions } from '../board/redis-heat-board.ts'
import { StoreCallError } from '../errors.ts'
import { RedisLaneRelay } from '../lane/redis-lane-relay.ts'
import type { PrewarmJob } from '../prewarm/prewarm-job.ts'
import { chainEntry, formatHead, parseHead } from './audit-chain.ts'
import { readLine } from './change-line.ts'
import { type KeptBlocks, maxTrimmedBlocks, type StoredBlock } from './heat-blocks.ts'
import {
  type AuditEnd,
  type EntryName,
  entryId,
  type HistoryBatch,
  type HistoryQuery,
  type HubState,
  type HubStore,
  isAskedFor,
  type KeptHistory,
  maxPolicies,
  maxTrimmedEvents,
  type RestoredState,
  type StoreChange,
  type StoredEntry,
  type StoredPolicy,
  type StoreLimits,
  type StoreOptions,
  storeDefaults,
} from './hub-store.ts'

const script = (name: string) => loadScript(new URL(`./lua/${name}.lua`, import.meta.url))
const addPolicy = script('add-policy')
const appendAudit = script('append-audit')
const appendHistory = script('append-history')
const changeScript = script('change')
const finishJob = script('finish-job')
const reserveVersions = script('reserve-versions')
const restore = script('restore')
const saveBlock = script('save-block')
const saveJob = script('save-job')
const seed = script('seed')
const takeJobs = script('take-jobs')
const trimBlock = script('trim-block')
const trimHistory = script('trim-history')

/** Pre-warm jobs that a hub takes at a time. */
const maxTaken = 20
/** How often an entry is rechained because other hubs were faster. */
const maxChainings = 100
/** Number of events per step when searching the history. */
const historyStep = 1000
/** Number of heat blocks read per step. */
const blocksStep = 50

export interface RedisStoreOptions extends StoreOptions {
  /** The prefix of all keys; hubs with the same prefix share everything. @default 'firebreak' */
  readonly prefix?: string
  /** For alarms: its address, without its password. */
  readonly address?: string
  /** Closes the connection when the store is closed. @default the caller keeps it */
  readonly disconnect?: () => void
  /** Only for replays in tests: the board's time. Production always uses Redis' own. @internal */
  readonly testClock?: Clock
  /** Only for simulations: another board. @internal */
  readonly boardOptions?: Pick<RedisHeatBoardOptions, 'bucketCount' | 'maxOutbox'>
}

/**
 * A store on a Redis or a Redis Cluster that several hubs share. Rules, switch, history and audit carry one hash tag,
 * so that a change of a rule and its version are one step; the keys' heat is in the board's buckets, spread over all
 * nodes.
 */
export class RedisStore implements HubStore {
  readonly name = 'redis'
  readonly address: string | undefined
  readonly board: HeatBoard
  readonly lane: RedisLaneRelay
  readonly notices: NoticeClaims
  readonly #redis: Redis
  readonly #limits: Required<StoreLimits>
  readonly #keys: Readonly<
    Record<'state' | 'rules' | 'entries' | 'history' | 'audit' | 'positions' | 'policies' | 'jobs' | 'dueJobs', string>
  >
  readonly #disconnect: () => void
  readonly #newId: () => string
  readonly #batchKey: (writer: string) => string
  readonly #recordsKey: (kind: string) => string
  /** The audit's head as this store last saw it, and the entries in progress. */
  #auditHead = ''
  #auditing: Promise<unknown> = Promise.resolve()
  readonly #blockKeys: (stepMs: number, at: number) => readonly [block: string, index: string, bytes: string]

  constructor(redis: Redis, options: RedisStoreOptions = {}) {
    const {
      prefix = 'firebreak',
      address,
      disconnect = () => {},
      testClock,
      boardOptions,
      newId,
      ...limits
    } = { ...storeDefaults, ...options }
    this.#redis = redis
    this.address = address
    this.#limits = limits
    this.#newId = newId
    this.#disconnect = disconnect
    const key = (name: string) => `{${prefix}:hub}:${name}`
    this.#recordsKey = (kind) => key(`records:${kind}`)
    this.#blockKeys = (stepMs, at) => [key(`heat:${stepMs}:${at}`), key(`heat:${stepMs}`), key('heat-bytes')]
    this.#batchKey = (writer) => key(`wrote:${writer}`)
    this.#keys = {
      state: key('state'),
      rules: key('rules'),
      entries: key('entries'),
      history: key('history'),
      audit: key('audit'),
      positions: key('positions'),
      policies: key('policies'),
      jobs: key('jobs'),
      dueJobs: key('due-jobs'),
    }
    const boardKeys = { prefix, stateKey: this.#keys.state, hubsKey: key('hubs') }
    this.board = new RedisHeatBoard(redis, {
      ...boardKeys,
      ...(testClock && { testClock }),
      ...boardOptions,
    })
    this.lane = new RedisLaneRelay(redis, key('lane'), newId())
    const noticeKey = (name: string) => key(`notice:${name}`)
    this.notices = {
      take: async (name, forMs) => (await redis.send(['SET', noticeKey(name), '1', 'NX', 'PX', forMs])) === 'OK',
      extend: async (name, forMs) => void (await redis.send(['PEXPIRE', noticeKey(name), forMs])),
      end: async (name) => (await redis.send(['DEL', noticeKey(name)])) === 1,
    }
  }

  async load(): Promise<HubState> {
    const { state: stateKey, rules, entries } = this.#keys
    await this.#redis.send(['HSETNX', stateKey, 'epoch', this.#newId()])
    const [state, ruleValues, entryValues] = await Promise.all([
      this.#redis.send(['HGETALL', stateKey]).then(toMap),
      this.#redis.send(['HVALS', rules]) as Promise<string[]>,
      this.#redis.send(['HVALS', entries]) as Promise<string[]>,
    ])
    const rulesVersion = Number(state.get('rulesVersion') ?? 0)
    const isOff = state.get('isOff') === '1'
    return {
      epoch: state.get('epoch') ?? '',
      versionFloor: Number(state.get('versionFloor') ?? 0),
      isOff,
      rules: ruleValues.map((text) => JSON.parse(text) as Rule).sort((a, b) => (a.id < b.id ? -1 : 1)),
      rulesVersion,
      line: readLine(state.get('line'), rulesVersion, isOff),
      entries: entryValues.map((text) => JSON.parse(text) as StoredEntry),
    }
  }

  saveRule(rule: Rule, change?: StoreChange): Promise<number> {
    return this.#change(rule.id, JSON.stringify(rule), change)
  }

  deleteRule(id: string, change?: StoreChange): Promise<number> {
    return this.#change(id, '', change)
  }

  async saveSwitch(isOff: boolean, change?: StoreChange): Promise<void> {
    await this.#change('', isOff ? '1' : '0', change)
  }

  async seed(given: readonly Rule[]): Promise<boolean> {
    if (given.length === 0) return false
    const { rules, state } = this.#keys
    const values = given.flatMap((rule) => [rule.id, JSON.stringify(rule)])
    return (await this.#redis.run(seed, [rules, state], [`file.${this.#newId().slice(0, 8)}`, ...values])) === 1
  }

  async #change(field: string, value: string, change: StoreChange | undefined): Promise<number> {
    const { rules, state, audit } = this.#keys
    const { name = this.#newId(), audit: entry, after = '' } = change ?? {}
    const at = Math.floor(entry?.at ?? 0)
    const { maxAudit } = this.#limits
    const run = (json: string, from: string, to: string) =>
      this.#redis.run(changeScript, [rules, state, audit], [field, value, at, name, json, maxAudit, from, to, after])
    try {
      return await (entry === undefined ? run('', '', '').then(firstOf) : this.#audited(entry, run))
    } catch (error) {
      throw new StoreCallError(error as Error, isRefused(error as Error))
    }
  }

  async reserveVersions(version: number): Promise<void> {
    await this.#redis.run(reserveVersions, [this.#keys.state], [version])
  }

  async saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): Promise<void> {
    const { entries } = this.#keys
    if (removed.length > 0) await this.#redis.send(['HDEL', entries, ...removed.map(entryId)])
    const values = set.flatMap((stored) => [entryId(stored.entry), JSON.stringify(stored)])
    if (values.length > 0) await this.#redis.send(['HSET', entries, ...values])
  }

  async appendHistory(events: readonly HistoryEvent[], batch?: HistoryBatch): Promise<void> {
    if (events.length === 0) return
    const { writer, number } = batch ?? { writer: this.#newId(), number: 1 }
    const keys = [this.#keys.history, this.#batchKey(writer)]
    const texts = events.map((event) => JSON.stringify(event))
    await this.#redis.run(appendHistory, keys, [number, this.#limits.maxHistory, ...texts])
  }

  async history(query: HistoryQuery): Promise<readonly HistoryEvent[]> {
    const { since = 0, limit } = query
    const found: HistoryEvent[] = []
    for (let start = 0; found.length < limit; start += historyStep) {
      const range = ['LRANGE', this.#keys.history, start, start + historyStep - 1] as const
      const events = ((await this.#redis.send(range)) as string[]).map((text) => JSON.parse(text) as HistoryEvent)
      found.push(...events.filter((event) => isAskedFor(event, query)))
      // Hubs write interleaved, and late if the store was unreachable: only a whole step before the period ends the
      // search.
      if (events.length < historyStep || events.every(({ at }) => at < since)) break
    }
    return found.slice(0, limit)
  }

  async trimHistory(before: number): Promise<void> {
    await this.#redis.run(trimHistory, [this.#keys.history], [Math.floor(before), maxTrimmedEvents])
  }

  async keptHistory(): Promise<KeptHistory> {
    const [events, oldest] = await Promise.all([
      this.#redis.send(['LLEN', this.#keys.history]),
      this.#redis.send(['LINDEX', this.#keys.history, -1]) as Promise<string | null>,
    ])
    return { events: Number(events), from: oldest === null ? null : (JSON.parse(oldest) as HistoryEvent).at }
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    const { state, audit } = this.#keys
    await this.#audited(entry, (json, from, to) =>
      this.#redis.run(appendAudit, [state, audit], [from, to, json, this.#limits.maxAudit]),
    )
  }

  /**
   * Runs a script that appends an entry and returns {result, head of the audit}. Redis scripts have no SHA-256: the
   * entry is chained here, to the last known head, and again (-1) if another hub was faster. One at a time, because two
   * from one hub would only conflict.
   */
  #audited(entry: AuditEntry, run: (json: string, from: string, to: string) => Promise<RedisReply>): Promise<number> {
    const append = async () => {
      for (let attempt = 0; attempt < maxChainings; attempt++) {
        const from = this.#auditHead
        const chained = chainEntry(parseHead(from), entry)
        const [result, head] = (await run(JSON.stringify(chained), from, formatHead(chained))) as [number, string]
        this.#auditHead = head
        if (result !== -1) return Number(result)
      }
      throw new Error(`the audit was changed by others ${maxChainings} times in a row`)
    }
    const appended = this.#auditing.then(append)
    this.#auditing = appended.catch(() => {})
    return appended
  }

  async audit(limit: number, skip = 0): Promise<readonly AuditEntry[]> {
    if (limit < 1) return []
    const texts = (await this.#redis.send(['LRANGE', this.#keys.audit, skip, skip + limit - 1])) as string[]
    return texts.map((text) => JSON.parse(text) as AuditEntry)
  }

  async auditEnd(): Promise<AuditEnd> {
    const head = (await this.#redis.send(['HGET', this.#keys.state, 'auditHead'])) as string | null
    return { head: parseHead(head), kept: this.#limits.maxAudit }
  }

  async policiesAfter(version: number): Promise<readonly StoredPolicy[]> {
    const { state, policies } = this.#keys
    const newest = Number((await this.#redis.send(['HGET', state, 'policyVersion'])) ?? 0)
    if (newest <= version) return []
    const texts = (await this.#redis.send(['LRANGE', policies, 0, -1])) as string[]
    return texts
      .map((text) => JSON.parse(text) as StoredPolicy)
      .filter((kept) => kept.version > version)
      .reverse()
  }

  async addPolicy(policy: StoredPolicy, audit: AuditEntry): Promise<boolean> {
    const { state, policies, audit: auditKey } = this.#keys
    const { maxAudit } = this.#limits
    const stored = JSON.stringify(policy)
    const run = (json: string, from: string, to: string) =>
      this.#redis.run(
        addPolicy,
        [policies, state, auditKey],
        [policy.version, stored, maxPolicies, json, maxAudit, from, to],
      )
    return (await this.#audited(audit, run)) === 1
  }

  async position(source: string): Promise<string | undefined> {
    return ((await this.#redis.send(['HGET', this.#keys.positions, source])) as string | null) ?? undefined
  }

  async savePosition(source: string, position: string): Promise<void> {
    await this.#redis.send(['HSET', this.#keys.positions, source, position])
  }

  async records(kind: string): Promise<ReadonlyMap<string, string>> {
    return toMap(await this.#redis.send(['HGETALL', this.#recordsKey(kind)]))
  }

  async saveRecord(kind: string, name: string, value: string | undefined): Promise<void> {
    const key = this.#recordsKey(kind)
    await this.#redis.send(value === undefined ? ['HDEL', key, name] : ['HSET', key, name, value])
  }

  async saveJob(job: PrewarmJob): Promise<boolean> {
    const { jobs, dueJobs } = this.#keys
    const args = [job.id, Math.floor(job.at), JSON.stringify(job), this.#limits.maxJobs]
    return (await this.#redis.run(saveJob, [dueJobs, jobs], args)) === 1
  }

  async jobs(): Promise<readonly PrewarmJob[]> {
    const texts = (await this.#redis.send(['HVALS', this.#keys.jobs])) as string[]
    return texts.map(toJob).sort((a, b) => a.at - b.at)
  }

  async takeJobs(now: number, leaseMs: number): Promise<readonly PrewarmJob[]> {
    const { jobs, dueJobs } = this.#keys
    const texts = (await this.#redis.run(takeJobs, [dueJobs, jobs], [Math.floor(now), leaseMs, maxTaken])) as string[]
    return texts.map(toJob)
  }

  async finishJob(id: string, next?: PrewarmJob): Promise<boolean> {
    const { jobs, dueJobs } = this.#keys
    const args = next === undefined ? [id, '', ''] : [id, Math.floor(next.at), JSON.stringify(next)]
    return (await this.#redis.run(finishJob, [dueJobs, jobs], args)) === 1
  }

  async deleteJob(id: string): Promise<boolean> {
    const { jobs, dueJobs } = this.#keys
    const [count] = await Promise.all([this.#redis.send(['HDEL', jobs, id]), this.#redis.send(['ZREM', dueJobs, id])])
    return count === 1
  }

  async saveBlock({ stepMs, at, writer, data }: StoredBlock): Promise<void> {
    await this.#redis.run(saveBlock, [...this.#blockKeys(stepMs, at)], [at, writer, data, stepMs])
  }

  async blocks(stepMs: number, from: number, to: number): Promise<readonly StoredBlock[]> {
    const [, index] = this.#blockKeys(stepMs, 0)
    const starts = (await this.#redis.send(['ZRANGEBYSCORE', index, from, `(${to}`])) as string[]
    const found: StoredBlock[] = []
    for (let first = 0; first < starts.length; first += blocksStep) {
      const some = starts.slice(first, first + blocksStep).map(Number)
      const answers = await Promise.all(
        some.map((at) => this.#redis.send(['HGETALL', this.#blockKeys(stepMs, at)[0]]).then(toMap)),
      )
      answers.forEach((byWriter, place) => {
        const ordered = [...byWriter].sort(([a], [b]) => (a < b ? -1 : 1))
        for (const [writer, data] of ordered) found.push({ stepMs, at: some[place]!, writer, data })
      })
    }
    return found
  }

  async trimBlocks(stepMs: number, before: number): Promise<void> {
    const [, index] = this.#blockKeys(stepMs, 0)
    const range = ['ZRANGEBYSCORE', index, '-inf', `(${before}`, 'LIMIT', 0, maxTrimmedBlocks] as const
    const starts = (await this.#redis.send(range)) as string[]
    for (const at of starts) await this.#redis.run(trimBlock, [...this.#blockKeys(stepMs, Number(at))], [at, stepMs])
  }

  async keptBlocks(): Promise<readonly KeptBlocks[]> {
    const byStep = toMap(await this.#redis.send(['HGETALL', this.#blockKeys(0, 0)[2]]))
    const kept = await Promise.all(
      [...byStep].map(async ([stepMs, bytes]) => {
        const [, index] = this.#blockKeys(Number(stepMs), 0)
        const [oldest] = (await this.#redis.send(['ZRANGE', index, 0, 0])) as string[]
        return { stepMs: Number(stepMs), bytes: Number(bytes), from: Number(oldest ?? 0) }
      }),
    )
    return kept.filter(({ bytes }) => bytes > 0).sort((a, b) => a.stepMs - b.stepMs)
  }

  async restore({ rules, rulesVersion, isOff, line, instead }: RestoredState): Promise<boolean> {
    const { rules: rulesKey, state } = this.#keys
    const values = rules.flatMap((rule) => [rule.id, JSON.stringify(rule)])
    const args = [instead, `${line.join(' ')} `, rulesVersion, isOff ? '1' : '0', ...values]
    return (await this.#redis.run(restore, [rulesKey, state], args)) === 1
  }

  async close(): Promise<void> {
    await this.lane.close()
    this.#disconnect()
  }
}

function toJob(text: string): PrewarmJob {
  return JSON.parse(text) as PrewarmJob
}

/** True if the server refused or was never asked; otherwise it is unknown whether the change was made. */
function isRefused({ name, message }: Error): boolean {
  return name === 'ReplyError' || message.startsWith("Stream isn't writeable") || message.includes('not connected')
}

function firstOf(reply: RedisReply): number {
  return Number((reply as readonly RedisReply[])[0])
}

/** A reply to HGETALL, which is flat in RESP2 and an object in RESP3. */
function toMap(reply: RedisReply): ReadonlyMap<string, string> {
  if (!Array.isArray(reply)) return new Map(Object.entries(reply as Record<string, string>))
  const flat = reply as string[]
  return new Map(flat.flatMap((field, index) => (index % 2 === 0 ? [[field, flat[index + 1]!] as const] : [])))
}
