import { createHash } from 'node:crypto'
import { keyText, parseKeyText, type TimerHandle, version } from '@firebreak/core'
import type { KeyPattern, Rule } from '@firebreak/core/rules'
import { AlarmBoard } from './alarms/alarm-board.ts'
import { AlarmDesk } from './alarms/alarm-desk.ts'
import { type AlarmNotice, AlarmWebhooks } from './alarms/alarm-webhooks.ts'
import { AlertRoutes } from './alarms/alert-routes.ts'
import { FleetNotices } from './alarms/fleet-notices.ts'
import { HotKeyAlarms } from './alarms/hot-key-alarms.ts'
import { PassingAlarms } from './alarms/passing-alarms.ts'
import { ProcessAlarms } from './alarms/process-alarms.ts'
import { RealNamesAlarm } from './alarms/real-names-alarm.ts'
import { Collector } from './collect/collector.ts'
import type { ReportIntake } from './collect/report-intake.ts'
import { HotKeys } from './decide/hot-keys.ts'
import { Inspections } from './deliver/inspections.ts'
import { SensorSessions } from './deliver/sensor-sessions.ts'
import { TableDelivery } from './deliver/table-delivery.ts'
import { BarredSensors } from './fleet/barred-sensors.ts'
import { Fleet } from './fleet/fleet.ts'
import type { OwnFigures } from './fleet/hub-figures.ts'
import { LostHubs } from './fleet/lost-hubs.ts'
import { TellerBounds } from './fleet/teller-bounds.ts'
import { Forecaster } from './forecast/forecaster.ts'
import { pastMinutes } from './forecast/learn-from-history.ts'
import type { NearKeys } from './heat/near-keys.ts'
import { EpisodeSteps } from './history/episode-steps.ts'
import { HeatHistory } from './history/heat-history.ts'
import { prefixOf } from './history/past.ts'
import { type HubCoreOptions, type ResolvedCoreOptions, resolveCoreOptions } from './hub-options.ts'
import { InvalidationLane } from './lane/invalidation-lane.ts'
import { RolloutWatch } from './rules/rollout-watch.ts'
import { tellShortWindows, tellUnknown } from './rules/rule-alarms.ts'
import { RuleBook } from './rules/rule-book.ts'
import { loadFirstState } from './store/first-state.ts'
import type { HubState, HubStore } from './store/hub-store.ts'
import { Journal, versionBlock } from './store/journal.ts'
import { explainStoreTrouble, sharedName } from './store/store-trouble.ts'
import { HubViews } from './views/hub-views.ts'
import { HubWatchers } from './watchers/hub-watchers.ts'

const housekeepingMs = 1000
/** How often a shared store's settings are reloaded. */
const settingsMs = 5000

/**
 * The hub without a network: its composition root. Each part gets what it uses and knows nothing of the hub. Sensors
 * connect through channels of frames (`sensorSessions`); `HubServer` adds HTTP and WebSocket. Time, timers, randomness
 * and ids come from the options' runtime.
 */
export class HubCore {
  readonly options: ResolvedCoreOptions
  readonly alarms: AlarmBoard
  /** Alarms without an explicit end. */
  readonly passingAlarms: PassingAlarms
  /** Alarms of rooms in other processes. */
  readonly processAlarms: ProcessAlarms
  readonly tellers: TellerBounds
  readonly webhooks: AlarmWebhooks
  /** Where alarms are sent, as configured by users. */
  readonly alertRoutes: AlertRoutes
  /** Alarms with their acknowledgements and silences. */
  readonly desk: AlarmDesk
  readonly journal: Journal
  readonly book: RuleBook
  readonly fleet: Fleet
  readonly delivery: TableDelivery
  readonly keys: HotKeys
  readonly collector: Collector
  readonly lane: InvalidationLane
  readonly inspections: Inspections
  /** What was hot before now. */
  readonly history: HeatHistory
  /** What is expected to be hot, because it was before. */
  readonly forecaster: Forecaster
  /** Blocked processes. */
  readonly barred: BarredSensors
  /** Sources of changes; not running until started. */
  readonly watchers: HubWatchers
  readonly #timers: TimerHandle[] = []
  /** When a process last sent keys that had to be redacted. */
  /** How many times the switch was thrown here. */
  #thrown = 0
  readonly #realNames: RealNamesAlarm
  /** Rules being deleted because they have expired. */
  readonly #ending = new Set<string>()
  readonly #rollouts: RolloutWatch
  #settingsDueAt = 0
  readonly #hotKeyAlarms: HotKeyAlarms
  readonly #fleetNotices: FleetNotices
  readonly #lostHubs: LostHubs

  /**
   * Creates a hub from its store. A shared store that does not answer is loaded while the hub runs (`isHeard`): until
   * then the hub knows neither rules nor switch, accepts no sensors, and decides nothing.
   */
  static async open(store: HubStore, options: HubCoreOptions = {}): Promise<HubCore> {
    const state = await loadFirstState(store)
    const core = new HubCore(store, state, resolveCoreOptions(options))
    const barred = core.barred.load()
    // If a shared store is unreachable, this is read again while the hub runs.
    const loaded = Promise.all([barred, core.loadSettings()])
    await (store.board === undefined ? loaded : loaded.catch(() => {}))
    await core.#openForecast().catch((error: Error) => {
      core.options.logger.warn({ error: error.message }, 'cannot read what was learned about recurring heat')
    })
    await core.keys.open()
    await core.lane.open()
    return core
  }

  private constructor(store: HubStore, state: HubState, options: ResolvedCoreOptions) {
    this.options = options
    const { runtime, logger, hubId } = options
    const { clock, timers, random } = runtime
    const alarms = new AlarmBoard(clock)
    this.alarms = alarms
    this.passingAlarms = new PassingAlarms(alarms, timers)
    this.processAlarms = new ProcessAlarms(this.passingAlarms, (grant, host) =>
      this.tellers.check('alarms', grant, host, clock.now()),
    )
    const reservedVersion = state.versionFloor + versionBlock
    const journal = new Journal({ store, reservedVersion, runtime, logger, alarms })
    this.journal = journal
    const notices = { clock, timers, retry: options.retry.webhook }
    this.webhooks = new AlarmWebhooks({
      urls: options.alarmWebhooks,
      secret: options.webhookSecret,
      logger,
      ...notices,
    })
    this.alertRoutes = new AlertRoutes({ store, ...notices })
    const fleetNotices = new FleetNotices(store.notices)
    this.#fleetNotices = fleetNotices
    const send = (notice: AlarmNotice) => {
      // A hub that knows no route must not claim what another can send.
      if (this.alertRoutes.size === 0) return
      fleetNotices.tell('route', notice.event, notice.alarm.id, () => this.alertRoutes.send(notice))
    }
    // Hubs with other addresses in their settings each send to their own.
    const webhooks = `webhook ${createHash('sha256').update(JSON.stringify(options.alarmWebhooks)).digest('hex').slice(0, 8)}`
    this.desk = new AlarmDesk({ board: alarms, store, clock, hubId, send })
    alarms.onChange((event, alarm) => {
      const at = clock.now()
      fleetNotices.tell(webhooks, event, alarm.id, () => this.webhooks.send({ event, hubId, at, alarm }))
      const text = `${event}: ${alarm.cause}`
      const record = () => journal.record({ at, kind: 'alarm', redisClusterId: '', key: '', ruleId: '', text })
      fleetNotices.tell('timeline', event, alarm.id, record)
    })
    this.#lostHubs = new LostHubs(alarms)
    const book = new RuleBook(store, state)
    this.book = book
    const refused = () => this.collector.refused
    const steps = new EpisodeSteps({ clock, record: (event) => journal.record(event) })
    const onEffect = steps.effect.bind(steps)
    const rollouts = new RolloutWatch({
      rules: () => book.list().rules,
      alarms,
      put: (rule, name) => this.putRule(rule, 'firebreak', name),
    })
    this.#rollouts = rollouts
    const onStatus = rollouts.takeStatus.bind(rollouts)
    const fleet = new Fleet({
      ...options,
      clock,
      alarms,
      passing: this.passingAlarms,
      ruleOf: (id) => book.get(id),
      refused,
      // The table depends on what the fleet reports; nobody reports before both exist.
      tableVersionOf: (serviceId) => this.delivery.view(serviceId).version,
      onEffect,
      onStatus,
    })
    this.fleet = fleet
    const isShared = store.board !== undefined
    const delivery = new TableDelivery({
      // Hubs that share a store count versions separately: a sensor that moves to another trusts its epoch.
      epoch: isShared ? `${state.epoch}/${hubId}/${Math.floor(clock.now())}` : state.epoch,
      version: state.versionFloor + 1,
      isOff: state.isOff,
      persist: (set, removed) => {
        if (!isShared) journal.saveEntries(set, removed)
      },
      onVersion: (version) => journal.reserve(version),
      onDelivered: (entry, services, sensors) => steps.delivered(entry, services, sensors),
    })
    this.delivery = delivery
    const { epoch } = state
    const keys = new HotKeys({
      ...{ settings: options, epoch, journal, book, alarms, fleet, delivery },
      ownFigures: () => this.ownFigures(),
    })
    this.keys = keys
    this.#hotKeyAlarms = new HotKeyAlarms({
      alarms,
      hosts: fleet.hosts,
      hotKeys: () => keys.decider.handled(),
      isPublished: () => delivery.isPublished,
      isOff: () => delivery.isOff,
      share: options.hotKeyAlarmPercent / 100,
    })
    const { intake, totals } = keys
    this.history = new HeatHistory({
      ...options,
      store,
      journal,
      keys,
      fleet,
      maxKeys: options.maxHistoryKeys,
      settings: options.history,
    })
    this.forecaster = new Forecaster({
      store,
      runtime,
      burning: (now) => keys.burning(now),
      prefixOf: (key) => parseKeyText(prefixOf(keyText(key))) ?? key,
      warm: (job) => void keys.prewarm(job),
    })
    this.barred = new BarredSensors(store)
    this.tellers = new TellerBounds(fleet, this.barred)
    this.inspections = new Inspections(runtime)
    const { hosts, traffic, bounds, tokenProcesses } = fleet
    const realNames = new RealNamesAlarm(alarms, clock)
    this.#realNames = realNames
    const onRealNames = realNames.tell.bind(realNames)
    const rooms = { clock, intake, totals, hosts, traffic, bounds, tokenProcesses, barred: this.barred }
    this.collector = new Collector({ ...options, ...rooms, onRealNames })
    this.lane = new InvalidationLane({
      clock,
      random,
      timers,
      relay: store.lane,
      retry: options.retry.relay,
      onUnreadable: ({ message: error }) => logger.warn({ error }, 'cannot read a change sent by another hub'),
      onRelay: (failure) => tellRelay(alarms, store, failure),
    })
    const isHot = (redisClusterId: string, key: string) => delivery.has(redisClusterId, this.outside(key))
    this.watchers = new HubWatchers({ runtime, store, alarms, lane: this.lane, retry: options.retry, isHot })
    book.onChange((set) => tellUnknown(alarms, set))
    book.onChange((set) => tellShortWindows(alarms, set, options.reportIntervalMs))
    book.onChange((set) => this.collector.governor.setRules(set.rules))
    book.onChange((set) => keys.applyRules(set))
    keys.restore(state.entries, clock.now())
  }

  get store(): HubStore {
    return this.journal.store
  }

  get engine(): NearKeys {
    return this.keys.engine
  }

  get intake(): ReportIntake {
    return this.keys.intake
  }

  /** Hubs that share the store, this one included. */
  get hubCount(): number {
    return this.keys.hubCount
  }

  /** False until the store has answered for the first time. */
  get isHeard(): boolean {
    return this.keys.isHeard
  }

  /** Resolves once the store has answered; at once if it did at the start. */
  get heard(): Promise<void> {
    return this.keys.heard
  }

  now(): number {
    return this.options.runtime.clock.now()
  }

  /** What this hub tells of itself. */
  ownFigures(): OwnFigures {
    const { governor, refused } = this.collector
    return {
      version,
      ...this.options.usage(),
      reportsPerSecond: Math.round(governor.rates(this.now()).reportsPerSecond),
      refusedReports: Object.values(refused).reduce((sum, many) => sum + many, 0),
    }
  }

  /** What a key is called in everything that the hub keeps, shows and sends. */
  outside(key: string): string {
    return this.options.redactKey?.(key) ?? key
  }

  /** Loads users' settings, including those made at other hubs of the store. */
  async loadSettings(): Promise<void> {
    await Promise.all([this.history.load(), this.forecaster.load(), this.desk.load(), this.alertRoutes.load()])
  }

  /** Starts evaluation and periodic maintenance. */
  start(): void {
    const { tickMs, runtime } = this.options
    this.#timers.push(
      runtime.timers.setInterval(() => this.keys.tick(), tickMs),
      runtime.timers.setInterval(() => void this.intake.inTurn((now) => this.#keepHouse(now)), housekeepingMs),
    )
    this.keys.start()
  }

  /** Accepts sensors, over whatever carries their frames. */
  sensorSessions(): SensorSessions {
    const { runtime, hubId, heartbeatMs, maxInstanceConnections } = this.options
    const { collector, fleet, keys, delivery, lane, barred } = this
    const watched = () => this.watchers.watched()
    const outside = (text: string) => this.outsideText(text)
    const rooms = { collector, fleet, keys, delivery, lane, barred, inspections: this.inspections, watched, outside }
    return new SensorSessions({ runtime, hubId, heartbeatMs, maxInstanceConnections, ...rooms })
  }

  /** What users see. */
  views(): HubViews {
    const { store, keys, fleet, collector, delivery, desk: alarms, history, options } = this
    const { hubId, runtime, nodeOfSlot } = options
    return new HubViews({
      hubId,
      nodeOfSlot,
      clock: runtime.clock,
      store,
      keys,
      fleet,
      collector,
      delivery,
      alarms,
      history,
      rules: () => this.book.list().rules,
    })
  }

  rules(): { readonly rules: readonly Rule[]; readonly version: number } {
    return this.book.list()
  }

  rule(id: string): Rule | undefined {
    return this.book.get(id)
  }

  /** Adds or replaces a rule; it is in force, stored and audited when this resolves. */
  async putRule(given: Rule, who: string, name = this.#newName()): Promise<void> {
    const rule = this.#redactRule(given)
    const before = this.rule(rule.id) ?? null
    const what = `${before === null ? 'add' : 'change'} rule ${rule.id}`
    await this.book.put(rule, this.journal.change(who, what, before, rule, name))
  }

  /** False if there is no such rule, and none that a deletion of this name has deleted. */
  async deleteRule(id: string, who: string, name = this.#newName()): Promise<boolean> {
    const before = this.rule(id)
    if (before === undefined) return this.book.hasMade(name)
    await this.book.delete(id, this.journal.change(who, `delete rule ${id}`, before, null, name))
    return true
  }

  /**
   * The kill switch. Off: this hub's sensors are notified first, and an unreachable store gets it, with its audit
   * entry, when it recovers; returns true if the store has it. On: only with the store, so that nobody undoes what
   * others have switched off meanwhile. A call that was made before, by its name, changes nothing, whatever others have
   * done since.
   */
  async setOff(isOff: boolean, who: string, name = this.#newName()): Promise<boolean> {
    // Sent twice: what was switched since then stays.
    if (this.book.hasMade(name)) return true
    const before = this.delivery.isOff
    const thrown = this.#thrown + (isOff ? 1 : 0)
    if (isOff) {
      this.#thrown = thrown
      this.#turn(true)
    }
    const change = this.journal.change(who, isOff ? 'switch off' : 'switch on', { isOff: before }, { isOff }, name)
    let isNowOff = isOff
    const isStored = await this.journal.saveSwitch(
      isOff,
      () => this.book.continued(change),
      async () => {
        // Where another hub has made the same call, it may have been undone since.
        isNowOff = (await this.book.load()).isOff
      },
    )
    // Unless it was thrown again meanwhile.
    if (this.#thrown === thrown) this.#turn(isNowOff)
    return isStored
  }

  /** A key's text, as in frames; invalid text is kept and refused by its reader. */
  outsideText(text: string): string {
    const { redactKey } = this.options
    const key = redactKey === undefined ? undefined : parseKeyText(text)
    return key === undefined ? text : keyText(redactKey!(key))
  }

  /** A rule for single keys names them as in reports. */
  #redactRule(rule: Rule): Rule {
    if (this.options.redactKey === undefined) return rule
    const redact = (pattern: KeyPattern): KeyPattern =>
      pattern.kind === 'exact' ? { ...pattern, keys: pattern.keys.map((key) => this.outside(key)) } : pattern
    return { ...rule, pattern: redact(rule.pattern), except: rule.except.map(redact) }
  }

  #turn(isOff: boolean): void {
    this.delivery.setOff(isOff)
    this.delivery.flush()
  }

  #newName(): string {
    return this.options.runtime.newId()
  }

  /**
   * Resolves once every report so far is in the windows and, with several hubs, a full exchange with the others is
   * done.
   */
  settled(): Promise<void> {
    return this.keys.settled()
  }

  /** Resolves once the store has every decision so far. */
  async stored(): Promise<void> {
    await this.#fleetNotices.settled()
    await this.journal.stored()
  }

  /** Writes what is pending and closes the store. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.watchers.close()
    await this.#fleetNotices.settled()
    this.passingAlarms.close()
    this.webhooks.close()
    this.alertRoutes.close()
    this.lane.close()
    await this.keys.close()
    await this.forecaster.keep()
    this.history.close()
    await this.journal.close()
  }

  #keepHouse(now: number): void {
    const { fleet, keys, collector, options } = this
    fleet.forget(now)
    keys.keepHouse(now)
    const load = Math.max(options.loadOf(), keys.intake.load())
    collector.governor.adjust(fleet.hosts.counts().connected, load, now)
    fleet.watch(now)
    this.#hotKeyAlarms.watch(now)
    // Cut off, this hub sees the others as last known.
    if (!keys.isAlone) this.#lostHubs.watch(new Set(keys.otherHubs.map(({ hubId }) => hubId)), keys.leavingHubs, now)
    const raised = new Set(this.alarms.list().map(({ id }) => id))
    this.#fleetNotices.watch(now, (id) => raised.has(id))
    this.#realNames.watch(now)
    this.history.tick(now)
    this.forecaster.tick(now)
    this.desk.tick(now)
    this.#rollouts.tick(now)
    this.#loadSettingsIfDue(now)
    this.#endRules()
  }

  /** A hub without learned patterns learns from its history. */
  async #openForecast(): Promise<void> {
    if (await this.forecaster.restore()) return
    const now = this.options.runtime.wallClock.now()
    this.forecaster.learn(await pastMinutes(this.history, now - this.history.settings.keepMs.minute, now))
  }

  /** With several hubs: settings made at another soon apply here. */
  #loadSettingsIfDue(now: number): void {
    if (now < this.#settingsDueAt) return
    this.#settingsDueAt = now + settingsMs
    // An unreachable store is reported elsewhere.
    if (this.store.board !== undefined) this.loadSettings().catch(() => {})
  }

  /** Deletes expired rules; hubs that share a store all try, and the change's id makes it one change. */
  #endRules(): void {
    const wallNow = this.options.runtime.wallClock.now()
    for (const { id, until } of this.book.list().rules) {
      if (until === undefined || until > wallNow || this.#ending.has(id)) continue
      this.#ending.add(id)
      this.deleteRule(id, 'firebreak', `end-${id}-${until}`)
        // A store that is unreachable has raised its alarm; the next round tries again.
        .catch(() => {})
        .finally(() => this.#ending.delete(id))
    }
  }
}

/** Changes do not reach other hubs, or theirs do not reach this one. */
function tellRelay(
  alarms: AlarmBoard,
  store: HubStore,
  failure: { readonly error: Error; readonly isOverdue: boolean } | undefined,
): void {
  if (failure === undefined) {
    alarms.clear('lane')
    return
  }
  const through = sharedName(store) ?? 'the store'
  const cause = `changes are not reaching the other hubs through ${through}: ${explainStoreTrouble(failure.error)}`
  const retry = 'what the others missed is flushed there once the shared Redis accepts it'
  alarms.raise({ id: 'lane', severity: failure.isOverdue ? 'critical' : 'warning', cause, retry })
}
