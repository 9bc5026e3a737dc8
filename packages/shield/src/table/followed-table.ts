import { rateLimitLapseMs, StrategyTable, type TableDelta, type TableEntry, type TableSnapshot } from '@firebreak/core'
import { isInRollout, type Rule } from '@firebreak/core/rules'
import type { ClusterShield } from '../cluster-shield.ts'
import type { HubClock } from '../hub/hub-clock.ts'
import type { ResolvedShieldOptions } from '../shield-options.ts'
import type { Trouble } from '../trouble/trouble.ts'
import { KeptEntries } from './kept-entries.ts'
import { deltaSteps, snapshotSteps } from './read-table.ts'
import { type SavedTable, TableFile } from './table-file.ts'
import { entriesPerStep, type Steps, TurnQueue } from './turn-queue.ts'

/** What following a hub's table needs. */
export interface FollowedTableOptions {
  readonly options: ResolvedShieldOptions
  readonly trouble: Trouble
  readonly hubClock: HubClock
  /** The shields of each Redis, which carry the table out. */
  readonly clusters: ReadonlyMap<string, ClusterShield>
  /** The table has changed. */
  readonly onChanged: () => void
  /** The rules have changed. */
  readonly onRules: (rules: readonly Rule[]) => void
  /** Asks the hub for the whole table; false if it cannot be asked. */
  readonly askForSnapshot: (reason: string) => boolean
}

/** The shortest time between two requests for the whole table. */
const resyncMs = 1000
/** Changes that may wait for their turn; beyond that, the whole table is requested instead. */
const maxWaiting = 1024

/**
 * The strategy table as followed by this process: through a hub's snapshots and deltas, each of which changes what the
 * shields of its Redis servers do, and through the file with the last good one. One change, or a bounded part of a large
 * one, is applied per turn of the event loop: `bench/table` has the longest turn in a storm of them.
 */
export class FollowedTable {
  readonly #table = new StrategyTable()
  readonly #pool = new KeptEntries()
  readonly #means: FollowedTableOptions
  readonly #file: TableFile | undefined
  readonly #turns: TurnQueue
  /** The rules as received, and as they apply here. */
  #received: readonly Rule[] = []
  #rules: readonly Rule[] = []
  #resyncAskedAt = Number.NEGATIVE_INFINITY
  /** The parts of a snapshot whose end has not come yet. */
  #parts: TableSnapshot[] = []

  constructor(means: FollowedTableOptions) {
    this.#means = means
    const { tableFile, runtime } = means.options
    const { trouble } = means
    this.#turns = new TurnQueue(runtime.timers)
    this.#file =
      tableFile === undefined ? undefined : new TableFile(tableFile, () => this.#saved(), { ...runtime, trouble })
  }

  get epoch(): string {
    return this.#table.epoch
  }

  get version(): number {
    return this.#table.version
  }

  get rules(): readonly Rule[] {
    return this.#rules
  }

  /** True if the table says that the kill switch is on. */
  get isOff(): boolean {
    return this.#table.isOff
  }

  /** Restores the table from the file, if there is one. */
  restore(): void {
    const saved = this.#file?.read(this.#pool)
    if (saved === undefined) return
    const { clock, wallClock } = this.#means.options.runtime
    this.#means.hubClock.restart(saved.hubOffsetMs + wallClock.now() - clock.now())
    this.#table.applySnapshot(saved.snapshot)
    this.#takeRules()
  }

  /** A hub is connected: it may be asked for its table at once. */
  connected(): void {
    this.#resyncAskedAt = Number.NEGATIVE_INFINITY
  }

  /** The hub is lost, and its pending changes are not needed: the next hub starts afresh. */
  disconnected(): void {
    this.#turns.clear()
    this.#parts = []
  }

  /** Applies a whole table, when it is its turn. */
  takeSnapshot(decode: () => TableSnapshot): void {
    this.#turns.addSteps(() => this.#takeSnapshot(decode))
  }

  *#takeSnapshot(decode: () => TableSnapshot): Steps {
    this.#resyncAskedAt = Number.NEGATIVE_INFINITY
    const part = yield* snapshotSteps(decode(), this.#means.trouble, this.#pool)
    const { epoch, version, hasMore } = part
    // A snapshot that was begun and not ended is none.
    const before = this.#parts.filter((other) => other.epoch === epoch && other.version === version)
    this.#parts = hasMore === true ? [...before, part] : []
    if (hasMore === true) return
    const snapshot = { ...part, entries: [...before, part].flatMap(({ entries }) => entries) }
    if (this.#table.applySnapshot(snapshot).kind !== 'applied') return
    this.#changed()
    for (const cluster of [...this.#means.clusters.values()]) yield* cluster.tableSteps(this.entriesForUs())
  }

  /** Applies changes, when it is their turn. */
  takeDelta(decode: () => TableDelta): void {
    if (this.#turns.length >= maxWaiting) {
      this.#turns.clear()
      this.#parts = []
      this.#resync('changes arrived faster than they could be applied')
    }
    this.#turns.addSteps(() => this.#takeDelta(decode))
  }

  *#takeDelta(decode: () => TableDelta): Steps {
    const delta = yield* deltaSteps(decode(), this.#means.trouble, this.#pool)
    const { kind } = this.#table.applyDelta(delta)
    if (kind === 'gap') this.#resync(`a delta from version ${delta.from} does not fit`)
    if (kind !== 'applied') return
    this.#changed()
    yield* this.#changeClusters(delta)
  }

  /** A hub states its version: if that is ahead of what it has sent, request its table. */
  heard(epoch: string, version: number): void {
    this.#turns.add(() => {
      const isBehind = epoch !== this.#table.epoch || version > this.#table.version
      if (isBehind) this.#resync(`the hub has version ${version}, this process ${this.#table.version}`)
    })
  }

  /** The table's entry for a key under its outside name. */
  get(redisClusterId: string, outside: string): TableEntry | undefined {
    return this.#table.get(redisClusterId, outside)
  }

  /** Like `get`, except entries for other processes. */
  getForUs(redisClusterId: string, outside: string): TableEntry | undefined {
    const entry = this.#table.get(redisClusterId, outside)
    return entry !== undefined && this.#isForUs(entry) ? entry : undefined
  }

  *entriesForUs(): Generator<TableEntry> {
    for (const entry of this.#table.entries()) if (this.#isForUs(entry)) yield entry
  }

  /** A RateLimit lapses when no hub was heard for long, because nobody could lift it. */
  lapseLimits(isConnected: boolean, heardAt: number): void {
    const isAlone = !isConnected && this.#means.options.runtime.clock.now() - heardAt > rateLimitLapseMs
    for (const cluster of this.#means.clusters.values()) cluster.setLimitsLapsed(isAlone, () => this.entriesForUs())
  }

  /** Writes what has not been written yet. */
  close(): void {
    this.#turns.stop()
    this.#file?.close()
  }

  #resync(reason: string): void {
    const now = this.#means.options.runtime.clock.now()
    if (now - this.#resyncAskedAt < resyncMs) return
    if (this.#means.askForSnapshot(reason)) this.#resyncAskedAt = now
  }

  *#changeClusters({ set, removed }: TableDelta): Steps {
    for (const [id, cluster] of [...this.#means.clusters]) {
      const isOwn = ({ redisClusterId }: { readonly redisClusterId: string }) => redisClusterId === id
      const own = set.filter(isOwn)
      const gone = [...removed.filter(isOwn), ...own.filter((entry) => !this.#isForUs(entry))]
      const ours = own.filter((entry) => this.#isForUs(entry))
      for (let from = 0; from < Math.max(ours.length, gone.length); from += entriesPerStep) {
        if (from > 0) yield
        const to = from + entriesPerStep
        cluster.changeTable(
          ours.slice(from, to),
          gone.slice(from, to).map(({ key }) => key),
        )
      }
    }
  }

  #changed(): void {
    this.#means.onChanged()
    this.#takeRules()
    this.#file?.changed()
  }

  #takeRules(): void {
    const { rules } = this.#table
    if (rules === this.#received) return
    this.#received = rules
    const { instanceId } = this.#means.options
    // A rule that is not rolled out to this process is decided and shown, but not acted on.
    this.#rules = rules.map((rule) => {
      const percent = rule.rollout?.percent ?? 100
      return rule.mode === 'on' && !isInRollout(rule.id, percent, instanceId) ? { ...rule, mode: 'shadow' } : rule
    })
    this.#means.onRules(this.#rules)
  }

  /** An entry that depends on one process' claim is for that process; one that is being rolled out is for some. */
  #isForUs({ onlyInstance, ruleId, rollout = 100 }: TableEntry): boolean {
    const { instanceId } = this.#means.options
    return (onlyInstance ?? instanceId) === instanceId && isInRollout(ruleId, rollout, instanceId)
  }

  #saved(): SavedTable {
    // The file outlives this process' steady clock, so the offset is to the wall clock.
    const { clock, wallClock } = this.#means.options.runtime
    return {
      snapshot: this.#table.snapshot(),
      hubOffsetMs: this.#means.hubClock.offsetMs + clock.now() - wallClock.now(),
    }
  }
}
