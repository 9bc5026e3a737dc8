import type { TimerHandle } from '@firebreak/core'
import type { Rule, RuleSet } from '@firebreak/core/rules'
import { AlarmBoard } from './alarms/alarm-board.ts'
import { AlarmWebhooks } from './alarms/alarm-webhooks.ts'
import { Collector } from './collect/collector.ts'
import type { ReportIntake } from './collect/report-intake.ts'
import { HotKeys } from './decide/hot-keys.ts'
import { SensorSessions } from './deliver/sensor-sessions.ts'
import { TableDelivery } from './deliver/table-delivery.ts'
import { BarredSensors } from './fleet/barred-sensors.ts'
import { Fleet } from './fleet/fleet.ts'
import type { NearKeys } from './heat/near-keys.ts'
import { type HubCoreOptions, type ResolvedCoreOptions, resolveCoreOptions } from './hub-options.ts'
import { InvalidationLane } from './lane/invalidation-lane.ts'
import { RuleBook } from './rules/rule-book.ts'
import type { HubState, HubStore } from './store/hub-store.ts'
import { Journal, versionBlock } from './store/journal.ts'
import { HubViews } from './views/hub-views.ts'
import { HubWatchers } from './watchers/hub-watchers.ts'

const housekeepingMs = 1000

/**
 * The hub without a network, and where its rooms are put together: each gets what it uses and knows nothing of the hub.
 * Sensors come in through channels of frames (`sensorSessions`); `HubServer` puts HTTP and WebSocket around it. Time, timers,
 * chance and names come from the options' runtime.
 */
export class HubCore {
  readonly options: ResolvedCoreOptions
  readonly alarms: AlarmBoard
  readonly webhooks: AlarmWebhooks
  readonly journal: Journal
  readonly book: RuleBook
  readonly fleet: Fleet
  readonly delivery: TableDelivery
  readonly keys: HotKeys
  readonly collector: Collector
  readonly lane: InvalidationLane
  /** Processes that people keep out. */
  readonly barred: BarredSensors
  /** Sources of changes; none run until they are started. */
  readonly watchers: HubWatchers
  readonly #timers: TimerHandle[] = []
  /** Rules that are being deleted because their time has passed. */
  readonly #ending = new Set<string>()

  /**
   * Loads what the store has and makes a hub of it. A shared store that does not answer is waited for by the hub as it runs
   * (`isHeard`): until then it knows neither rules nor switch, takes no sensors in, and decides nothing.
   */
  static async open(store: HubStore, options: HubCoreOptions = {}): Promise<HubCore> {
    const state = await loadState(store)
    const core = new HubCore(store, state, resolveCoreOptions(options))
    const barred = core.barred.load()
    // A shared store that is away is read again as the hub runs.
    await (store.board === undefined ? barred : barred.catch(() => {}))
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
    const reservedVersion = state.versionFloor + versionBlock
    const journal = new Journal({ store, reservedVersion, runtime, logger, alarms })
    this.journal = journal
    this.webhooks = new AlarmWebhooks({ urls: options.alarmWebhooks, secret: options.webhookSecret, timers, logger })
    alarms.onChange((event, alarm) => {
      const at = clock.now()
      this.webhooks.send({ event, hubId, at, alarm })
      const text = `${event}: ${alarm.cause}`
      journal.record({ at, kind: 'alarm', redisClusterId: '', key: '', ruleId: '', text })
    })
    const book = new RuleBook(store, state)
    this.book = book
    const refused = () => this.collector.refused
    const fleet = new Fleet({ ...options, clock, alarms, ruleOf: (id) => book.get(id), refused })
    this.fleet = fleet
    const isShared = store.board !== undefined
    const delivery = new TableDelivery({
      // Hubs that share a store each count versions for themselves: a sensor that moves to another believes its epoch.
      epoch: isShared ? `${state.epoch}/${hubId}/${Math.floor(clock.now())}` : state.epoch,
      version: state.versionFloor + 1,
      isOff: state.isOff,
      persist: (set, removed) => {
        if (!isShared) journal.saveEntries(set, removed)
      },
      onVersion: (version) => journal.reserve(version),
    })
    this.delivery = delivery
    const { epoch } = state
    const keys = new HotKeys({ settings: options, epoch, journal, book, alarms, fleet, delivery })
    this.keys = keys
    const { intake, totals } = keys
    this.barred = new BarredSensors(store)
    const { hosts, traffic, bounds } = fleet
    this.collector = new Collector({ ...options, clock, intake, totals, hosts, traffic, bounds, barred: this.barred })
    this.lane = new InvalidationLane({
      random,
      timers,
      relay: store.lane,
      onRelayFailure: ({ message: error }) => logger.warn({ error }, 'the other hubs were not told of an invalidation'),
    })
    this.watchers = new HubWatchers({ runtime, store, alarms, lane: this.lane, delivery })
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

  /** False while the store has not answered since the hub began. */
  get isHeard(): boolean {
    return this.keys.isHeard
  }

  /** Resolves once the store has answered, at once where it did at the start. */
  get heard(): Promise<void> {
    return this.keys.heard
  }

  now(): number {
    return this.options.runtime.clock.now()
  }

  /** Begins to evaluate and to keep house. */
  start(): void {
    const { tickMs, runtime } = this.options
    this.#timers.push(
      runtime.timers.setInterval(() => this.keys.tick(), tickMs),
      runtime.timers.setInterval(() => void this.intake.inTurn((now) => this.#keepHouse(now)), housekeepingMs),
    )
    this.keys.start()
  }

  /** Where sensors are let in, over whatever carries their frames. */
  sensorSessions(): SensorSessions {
    const { runtime, hubId, heartbeatMs } = this.options
    const { collector, fleet, keys, delivery, lane, barred } = this
    const watched = () => this.watchers.watched()
    const rooms = { collector, fleet, keys, delivery, lane, barred, watched }
    return new SensorSessions({ runtime, hubId, heartbeatMs, ...rooms })
  }

  /** What people are shown. */
  views(): HubViews {
    const { store, keys, fleet, collector, delivery, alarms, options } = this
    const { hubId, runtime } = options
    return new HubViews({ hubId, clock: runtime.clock, store, keys, fleet, collector, delivery, alarms })
  }

  rules(): { readonly rules: readonly Rule[]; readonly version: number } {
    return this.book.list()
  }

  rule(id: string): Rule | undefined {
    return this.book.get(id)
  }

  /** Adds or replaces a rule; it is in force, stored and audited when this resolves. */
  async putRule(rule: Rule, who: string, name = this.#newName()): Promise<void> {
    const before = this.rule(rule.id) ?? null
    const what = `${before === null ? 'add' : 'change'} rule ${rule.id}`
    await this.book.put(rule, this.journal.change(who, what, before, rule, name))
  }

  /** False where there is no such rule. */
  async deleteRule(id: string, who: string, name = this.#newName()): Promise<boolean> {
    const before = this.rule(id)
    if (before === undefined) return false
    await this.book.delete(id, this.journal.change(who, `delete rule ${id}`, before, null, name))
    return true
  }

  /**
   * The kill switch. Off: this hub's sensors are told first, and a store that is away gets it, with its audit entry, when it
   * is back; true where the store has it. On: only with the store, so that nobody undoes what others threw meanwhile.
   */
  async setOff(isOff: boolean, who: string, name = this.#newName()): Promise<boolean> {
    const before = this.delivery.isOff
    if (isOff) this.#turn(true)
    if (before === isOff && !this.journal.isSwitchPending) {
      await this.store.saveSwitch(isOff)
      return true
    }
    const change = this.journal.change(who, isOff ? 'switch off' : 'switch on', { isOff: before }, { isOff }, name)
    const isStored = await this.journal.saveSwitch(isOff, change, async () => {
      if (this.store.board !== undefined) await this.book.load()
    })
    this.#turn(isOff)
    return isStored
  }

  #turn(isOff: boolean): void {
    this.delivery.setOff(isOff)
    this.delivery.flush()
  }

  #newName(): string {
    return this.options.runtime.newId()
  }

  /** Resolves once every report so far is in the windows and the other hubs, where there are any, were told and heard. */
  settled(): Promise<void> {
    return this.keys.settled()
  }

  /** Resolves once the store has everything that was decided so far. */
  stored(): Promise<void> {
    return this.journal.stored()
  }

  /** Writes what is to be written and lets the store go. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.watchers.close()
    this.webhooks.close()
    this.lane.close()
    await this.keys.close()
    await this.journal.close()
  }

  #keepHouse(now: number): void {
    const { fleet, keys, collector, options } = this
    fleet.forget(now)
    keys.keepHouse(now)
    const load = Math.max(options.loadOf(), keys.intake.load())
    collector.governor.adjust(fleet.hosts.counts().connected, load, now)
    fleet.watch(now)
    this.#endRules()
  }

  /** Deletes rules whose time has passed; hubs that share a store all try, and the change's name makes it one. */
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

/** What a hub begins with whose store has not answered. */
const unheard: HubState = {
  epoch: '',
  versionFloor: 0,
  isOff: false,
  rules: [],
  rulesVersion: 0,
  line: [],
  entries: [],
}

async function loadState(store: HubStore): Promise<HubState> {
  try {
    const state = await store.load()
    await store.reserveVersions(state.versionFloor + versionBlock)
    return state
  } catch (error) {
    if (store.board === undefined) throw error
    return unheard
  }
}

/** A report counts as one moment: where it holds more time than a window, a key looks hotter than it is. */
function tellShortWindows(alarms: AlarmBoard, { rules }: RuleSet, reportIntervalMs: number): void {
  const short = rules.filter(({ mode, windowMs }) => mode !== 'off' && windowMs < reportIntervalMs)
  if (short.length === 0) {
    alarms.clear('report-interval')
    return
  }
  const ids = short.slice(0, 5).map(({ id }) => id)
  const cause = `sensors report every ${reportIntervalMs} ms, which is longer than the window of the rules ${ids.join(', ')}: they find keys hot that are not`
  const retry = 'raise windowMs of these rules, or lower reportIntervalMs'
  alarms.raise({ id: 'report-interval', severity: 'warning', cause, retry })
}

function tellUnknown(alarms: AlarmBoard, { unknownIds }: RuleSet): void {
  if (unknownIds.length === 0) {
    alarms.clear('rules-newer')
    return
  }
  const cause = `the store has rules that this version does not know: ${unknownIds.slice(0, 5).join(', ')}`
  const retry = 'this hub leaves them and their keys alone, the others follow them; upgrade this hub'
  alarms.raise({ id: 'rules-newer', severity: 'warning', cause, retry })
}
