import {
  type AlarmView,
  type AuditEntry,
  type ClaimPayload,
  decodeFrame,
  decodeInvalidation,
  encodeInvalidation,
  type HistoryEvent,
  type Invalidation,
  keyBytes,
  type Rule,
  RuleSet,
  type StatusPayload,
  type TimerHandle,
} from '@firebreak/core'
import { AlarmWebhooks } from './alarms/alarm-webhooks.ts'
import { FleetAlarms } from './alarms/fleet-alarms.ts'
import { SharedHub } from './board/shared-hub.ts'
import { Collector } from './collect/collector.ts'
import { IngestGovernor } from './collect/ingest-governor.ts'
import { openWindows } from './collect/open-windows.ts'
import type { ReportIntake } from './collect/report-intake.ts'
import { AccessTotals } from './decide/access-totals.ts'
import { AlarmBoard } from './decide/alarm-board.ts'
import { chooseByLoad } from './decide/choose-strategy.ts'
import { Decider } from './decide/decider.ts'
import type { HeatDecider } from './decide/heat-decider.ts'
import { judgeClaim } from './decide/judge-claim.ts'
import { StrategyReview } from './decide/strategy-review.ts'
import { TableDelivery } from './deliver/table-delivery.ts'
import { HeatRecorder } from './heat/heat-recorder.ts'
import { SlotHeat } from './heat/slot-heat.ts'
import type { TieredHeatEngine } from './heat/tiered-heat-engine.ts'
import { HostRegister, type Instance } from './hosts/host-register.ts'
import { type HubCoreOptions, type ResolvedCoreOptions, resolveCoreOptions } from './hub-options.ts'
import { InvalidationLane } from './lane/invalidation-lane.ts'
import type { PrewarmJob, PrewarmResult } from './prewarm/prewarmer.ts'
import { warmKeys } from './prewarm/warm-keys.ts'
import { RuleBook } from './rules/rule-book.ts'
import { StalenessBoard } from './staleness/staleness-board.ts'
import type { HubState, HubStore } from './store/hub-store.ts'
import { StoreWriter } from './store/store-writer.ts'
import { TurnClock } from './threads/turn-clock.ts'
import { KeyEffects } from './traffic/key-effects.ts'
import { TrafficMeter } from './traffic/traffic-meter.ts'
import { HubWatchers } from './watchers/hub-watchers.ts'

/** Versions are reserved in the store by the thousand, so that a delta does not wait for a disk. */
const versionBlock = 1000
const housekeepingMs = 1000

/**
 * The hub without a network: reports, statuses and claims come in, table changes and invalidations go out to whoever
 * joined. It is driven by an injected clock and injected timers; `HubServer` puts HTTP and WebSocket around it.
 */
export class HubCore {
  readonly options: ResolvedCoreOptions
  readonly engine: TieredHeatEngine
  readonly decider: HeatDecider
  readonly delivery: TableDelivery
  readonly collector: Collector
  readonly intake: ReportIntake
  readonly #clock: TurnClock
  readonly hosts: HostRegister
  readonly traffic = new TrafficMeter()
  readonly effects = new KeyEffects()
  readonly slots = new SlotHeat()
  readonly recorder = new HeatRecorder()
  readonly alarms = new AlarmBoard()
  readonly staleness = new StalenessBoard()
  /** Sources of changes; none run until they are started. */
  readonly watchers: HubWatchers
  readonly webhooks: AlarmWebhooks
  readonly governor: IngestGovernor
  readonly lane: InvalidationLane
  readonly store: HubStore
  readonly totals: AccessTotals
  readonly #writer: StoreWriter
  readonly #book: RuleBook
  readonly #review: StrategyReview
  readonly #fleetAlarms: FleetAlarms
  readonly #broadcasts = new Set<(bytes: Uint8Array) => void>()
  readonly #timers: TimerHandle[] = []
  /** The rules that the windows go by. */
  #ruleSet = new RuleSet([])
  #reservedVersion: number
  /** Where several hubs share the store. */
  readonly #shared: SharedHub | undefined

  /** Loads what the store has and makes a hub of it. */
  static async open(store: HubStore, options: HubCoreOptions = {}): Promise<HubCore> {
    const state = await store.load()
    await store.reserveVersions(state.versionFloor + versionBlock)
    const core = new HubCore(store, state, resolveCoreOptions(options))
    await core.#shared?.open()
    await store.lane?.open(
      (bytes) => void core.lane.publish(decodeInvalidation(decodeFrame(bytes))),
      () => core.lane.skip(),
    )
    return core
  }

  private constructor(store: HubStore, state: HubState, options: ResolvedCoreOptions) {
    this.options = options
    this.store = store
    this.#writer = new StoreWriter(store, options.timers, (error) => this.#onStoreTrouble(error))
    this.#clock = new TurnClock(options.clock)
    this.totals = new AccessTotals(options.nodeOfSlot)
    const windows = openWindows({ ...options, totals: this.totals })
    this.engine = windows.engine
    this.hosts = new HostRegister(options)
    this.#book = new RuleBook(store, state, (rules) => this.intake.inTurn((now) => this.#applyRules(rules, now)))
    this.#review = new StrategyReview(this.engine, this.effects)
    this.governor = new IngestGovernor(options)
    this.lane = new InvalidationLane((bytes) => {
      for (const broadcast of this.#broadcasts) broadcast(bytes)
    })
    this.watchers = new HubWatchers(this)
    this.webhooks = new AlarmWebhooks({ ...options, urls: options.alarmWebhooks })
    this.alarms.onChange((event, alarm) => this.#tellAlarm(event, alarm))
    this.#reservedVersion = state.versionFloor + versionBlock
    const { board } = store
    this.delivery = new TableDelivery({
      // Hubs that share a store each count versions for themselves: a sensor that moves to another believes its epoch.
      epoch: board === undefined ? state.epoch : `${state.epoch}/${options.hubId}/${Math.floor(this.now())}`,
      version: state.versionFloor + 1,
      isOff: state.isOff,
      persist: board === undefined ? (set, removed) => this.#writer.saveEntries(set, removed) : () => {},
      onVersion: (version) => this.#reserve(version),
    })
    const deciding = {
      ...options,
      clock: this.#clock,
      sink: this.delivery,
      totals: this.totals,
      processCount: (services: ReadonlySet<string>) => this.hosts.countOf(services),
      chooseStrategy:
        options.chooseStrategy ??
        chooseByLoad(
          (redisClusterId, key) => this.#review.loadOf(redisClusterId, key, this.#clock.now()),
          (redisClusterId, key, name) => this.#review.isGivenUp(redisClusterId, key, name, this.#clock.now()),
        ),
      record: (event: HistoryEvent) => this.#record(event),
    }
    if (board !== undefined) {
      const { engine, delivery, alarms, hosts, effects } = this
      const rulesOf = { rules: () => this.rules(), ruleSet: () => this.#ruleSet, loadRules: () => this.#book.load() }
      const parts = {
        store,
        board,
        options,
        deciding,
        engine,
        delivery,
        alarms,
        hosts,
        effects,
        review: this.#review,
        totals: this.totals,
        ...rulesOf,
      }
      this.#shared = new SharedHub(parts, state.epoch)
    }
    this.decider = this.#shared?.decider ?? new Decider(deciding)
    const { engine, decider, delivery, slots, hosts, traffic, governor, alarms } = this
    const [clock, totals] = [this.#clock, this.totals]
    const { timers, maxBacklogBytes } = options
    const intakeParts = { engine, decider, delivery, slots, totals, clock, alarms, timers, maxBacklogBytes }
    this.intake = windows.openIntake(intakeParts, this.#ruleSet)
    const parts = { intake: this.intake, hosts, traffic, governor, totals }
    this.collector = new Collector({ ...options, ...parts })
    const { staleness } = this
    const refused = () => this.collector.refused
    this.#fleetAlarms = new FleetAlarms({ alarms, hosts, staleness, refused, ruleOf: (id) => this.rule(id) })
    this.#applyRules(this.#book.set, this.now())
    this.#restore(state)
  }

  /** Begins to evaluate and to keep house. */
  start(): void {
    const { timers, tickMs } = this.options
    this.#timers.push(timers.setInterval(() => this.#tick(), tickMs))
    this.#timers.push(timers.setInterval(() => void this.intake.inTurn((now) => this.#keepHouse(now)), housekeepingMs))
    this.#shared?.start()
  }

  /** Hubs that share the store, this one included. */
  get hubCount(): number {
    return this.#shared?.hubCount ?? 1
  }

  now(): number {
    return this.options.clock.now()
  }

  rules(): { readonly rules: readonly Rule[]; readonly version: number } {
    return this.#book.list()
  }

  rule(id: string): Rule | undefined {
    return this.#book.get(id)
  }

  /** Adds or replaces a rule; it is in force, stored and audited when this resolves. */
  async putRule(rule: Rule, who: string): Promise<void> {
    const before = this.rule(rule.id) ?? null
    await this.#book.put(rule)
    await this.#audit(who, `${before === null ? 'add' : 'change'} rule ${rule.id}`, before, rule)
  }

  /** False where there is no such rule. */
  async deleteRule(id: string, who: string): Promise<boolean> {
    const before = this.rule(id)
    if (before === undefined) return false
    await this.#book.delete(id)
    await this.#audit(who, `delete rule ${id}`, before, null)
    return true
  }

  /** The kill switch. The fleet is told first; a store that is away must not keep protection on. */
  async setOff(isOff: boolean, who: string): Promise<void> {
    const before = this.delivery.isOff
    this.delivery.setOff(isOff)
    this.delivery.flush()
    await this.store.saveSwitch(isOff)
    if (before !== isOff) await this.#audit(who, isOff ? 'switch off' : 'switch on', { isOff: before }, { isOff })
  }

  /** Makes keys hot before they are: each by the rule that matches it, held for the job's time. */
  prewarm(job: PrewarmJob): PrewarmResult {
    const { engine, decider, delivery, hosts } = this
    return warmKeys(job, { engine, decider, delivery, hosts, rules: this.#ruleSet, now: this.now() })
  }

  /** Something failed that nobody waits for. */
  raiseAlarm(id: string, cause: string): void {
    this.alarms.raise({ id, severity: 'warning', cause, retry: 'it is not tried again' }, this.now())
  }

  /** What a sensor's shield did since its last status. */
  takeStatus(instance: Instance, status: StatusPayload): void {
    const now = this.now()
    const { counters } = status
    const { reads, writes, localHits, copyReads, limited } = counters
    const redis = Math.max(0, reads - localHits - copyReads - limited)
    const from = instance.lastStatusAt ?? now - 1000
    this.traffic.add(from, now, { redis, local: localHits, copies: copyReads, limited, writes })
    instance.lastStatusAt = now
    instance.lastSeenAt = now
    instance.tableVersion = status.version
    instance.isOff = status.isOff
    instance.droppedReports += counters.droppedReports
    instance.watchers = status.watchers
    for (const effect of status.keys) {
      this.effects.add(effect, now)
      const { ruleId, staleMs } = effect
      if (ruleId !== undefined && staleMs !== undefined) this.#fleetAlarms.observe(ruleId, staleMs, now)
    }
    for (const [redisClusterId, count] of Object.entries(status.nodeCounts ?? {}))
      this.#review.setNodeCount(redisClusterId, count)
  }

  /** A process acted on its own crossing: confirmed by the table, or taken back. */
  takeClaim(instance: Instance, claim: ClaimPayload): void {
    const { engine, decider, delivery } = this
    void this.intake.inTurn((now) => {
      const rollback = judgeClaim(claim, instance, { engine, decider, delivery, rules: this.#ruleSet, now })
      if (rollback !== undefined) this.#record(rollback)
      delivery.flush()
    })
  }

  /** Tells the sensors of all hubs; those of this one first. */
  publishInvalidation(invalidation: Omit<Invalidation, 'sequence'>): number {
    this.store.lane?.publish(encodeInvalidation({ ...invalidation, sequence: 0 })).catch((error: Error) => {
      this.options.logger.warn({ error: error.message }, 'the other hubs were not told of an invalidation')
    })
    return this.lane.publish(invalidation)
  }

  /** Joins a listener to the invalidation lane; gives how to leave. */
  onInvalidation(broadcast: (bytes: Uint8Array) => void): () => void {
    this.#broadcasts.add(broadcast)
    return () => void this.#broadcasts.delete(broadcast)
  }

  /** Writes what is to be written and lets the store go. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.watchers.close()
    this.webhooks.close()
    await this.intake.inTurn(() => this.delivery.flush())
    await this.intake.close()
    await this.#shared?.close()
    await this.#writer.close()
    await this.store.close()
  }

  /** Resolves once every report so far is in the windows and the other hubs, where there are any, were told and heard. */
  async settled(): Promise<void> {
    await this.intake.inTurn(() => {})
    await this.#shared?.settled()
  }

  /** Resolves once the store has everything that was decided so far. */
  stored(): Promise<void> {
    return this.#writer.drained()
  }

  #applyRules(set: RuleSet, now: number): void {
    this.#ruleSet = set
    // Before the engine, which tells the threads whether slots are wanted.
    this.totals.setRules(set.rules)
    this.engine.setRules(set.rules)
    this.intake.setRules(set)
    this.governor.setRules(set.rules)
    this.decider.setRules(set.rules)
    for (const track of [...this.decider.active()]) {
      // Of the services that share a track, some may have a rule of their own now.
      const ruleOf = (service: string) => set.rules[set.match(track.redisClusterId, service, track.key)]
      const rule = [...track.services].map(ruleOf).find((found) => found?.id === track.rule?.id)
      for (const service of track.services) {
        if (rule !== undefined && ruleOf(service) !== rule) this.delivery.removeService(track, service)
      }
      this.decider.reconsider(track, rule, now)
    }
    this.delivery.setRules(set)
    this.delivery.flush()
  }

  #restore({ entries }: HubState): void {
    const now = this.now()
    for (const { entry, services } of entries) {
      const bytes = keyBytes(entry.key)
      const heat = this.engine.find(entry.redisClusterId, bytes, 0, bytes.length, now)
      const track = heat && this.engine.trackOf(heat, this.#ruleSet.scope(entry.redisClusterId, services[0] ?? ''))
      if (track === undefined || track.rule?.id !== entry.ruleId || entry.until < now) {
        this.#writer.saveEntries([], [entry])
        continue
      }
      for (const service of services) track.addService(service)
      this.decider.restore(track, entry, now, this.options.restartGraceMs)
      this.engine.consider(heat!, track, now)
    }
    this.delivery.flush()
  }

  #tick(): void {
    this.intake.inPassing((now) => {
      this.decider.tick(now)
      this.delivery.flush()
    })
  }

  #keepHouse(now: number): void {
    this.engine.sweep(now)
    this.hosts.expire(now)
    this.traffic.forget(now)
    this.effects.forget(now)
    this.#review.judge(this.decider, now)
    this.delivery.flush()
    this.staleness.forget(now)
    const { redis, local, copies, limited, writes } = this.traffic.latest(now)
    this.recorder.record(this.engine, redis + local + copies + limited + writes, now)
    this.governor.adjust(this.hosts.counts().connected, Math.max(this.options.loadOf(), this.intake.load()), now)
    this.#fleetAlarms.watch(now)
    this.intake.watch(now)
  }

  #tellAlarm(event: 'raised' | 'cleared', alarm: AlarmView): void {
    const at = this.now()
    this.webhooks.send({ event, hubId: this.options.hubId, at, alarm })
    const text = `${event}: ${alarm.cause}`
    this.#record({ at, kind: 'alarm', redisClusterId: '', key: '', ruleId: '', text })
  }

  #reserve(version: number): void {
    if (version < this.#reservedVersion) return
    this.#reservedVersion = version + versionBlock
    const upTo = this.#reservedVersion
    this.#writer.write((store) => store.reserveVersions(upTo))
  }

  #record(event: HistoryEvent): void {
    this.#writer.addHistory(event)
    const { kind, redisClusterId, key, ruleId, text } = event
    this.options.logger.info({ kind, redisClusterId, key, ruleId }, text)
  }

  async #audit(who: string, what: string, before: unknown, after: unknown): Promise<void> {
    const entry: AuditEntry = { at: this.now(), who, what, before, after }
    this.options.logger.info({ who, before, after }, what)
    await this.store.appendAudit(entry)
  }

  #onStoreTrouble(error: Error | undefined): void {
    if (error === undefined) {
      this.alarms.clear('store')
      return
    }
    const cause = `the ${this.store.name} store failed: ${error.message}`
    this.options.logger.warn({ store: this.store.name, error: error.message }, 'a write to the store failed')
    const retry = 'the write is tried again every second; decisions go on from memory'
    this.alarms.raise({ id: 'store', severity: 'critical', cause, retry }, this.now())
  }
}
