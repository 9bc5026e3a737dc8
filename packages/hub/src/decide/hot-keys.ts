import { type ClaimPayload, isKnownEntry, keyBytes, type NodeLoad, parseKeyText, secretSeed } from '@firebreak/core'
import { actingLevel, RuleSet } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { Autopilot } from '../auto/autopilot.ts'
import { SharedHub } from '../board/shared-hub.ts'
import { openWindows } from '../collect/open-windows.ts'
import type { ReportIntake } from '../collect/report-intake.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { type Instance, processesIn } from '../fleet/host-register.ts'
import { figuresIn, type OwnFigures } from '../fleet/hub-figures.ts'
import type { BurningKey } from '../forecast/recogniser.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import { SlotHeat } from '../heat/slot-heat.ts'
import type { ResolvedCoreOptions } from '../hub-options.ts'
import { type PrewarmPlan, type PrewarmWish, planPrewarm } from '../prewarm/plan-prewarm.ts'
import type { PrewarmJob, PrewarmResult } from '../prewarm/prewarm-job.ts'
import type { RuleBook } from '../rules/rule-book.ts'
import type { StoredEntry } from '../store/hub-store.ts'
import type { Journal } from '../store/journal.ts'
import { DueClock } from '../threads/due-clock.ts'
import { AccessTotals } from './access-totals.ts'
import { CappedTable } from './capped-table.ts'
import { chooseByLoad } from './choose-strategy.ts'
import { Decider } from './decider.ts'
import type { HeatDecider } from './heat-decider.ts'
import { isEntered, readLevel } from './read-level.ts'
import { StrategyReview } from './strategy-review.ts'

export interface HotKeysOptions {
  readonly settings: ResolvedCoreOptions
  /** Names the store; changes if it lost everything. */
  readonly epoch: string
  readonly journal: Journal
  readonly book: RuleBook
  readonly alarms: AlarmBoard
  readonly fleet: Fleet
  readonly delivery: TableDelivery
  /** What this hub tells the others of its store of itself. */
  readonly ownFigures: () => OwnFigures
}

/**
 * Everything between a report and the strategy table: the windows that count keys, the rules in force, and the decider
 * that uses both, either this hub alone or all hubs of a shared store together.
 */
export class HotKeys {
  readonly engine: NearKeys
  readonly decider: HeatDecider
  /** The path of reports into the windows; what changes the windows takes its turn there too. */
  readonly intake: ReportIntake
  readonly totals: AccessTotals
  /** What `auto` rules decide by. */
  readonly autopilot: Autopilot
  readonly slots = new SlotHeat()
  readonly #options: HotKeysOptions
  readonly #review: StrategyReview
  readonly #capped: CappedTable
  readonly #shared: SharedHub | undefined
  /** The rules that the windows follow. */
  #rules = new RuleSet([])

  constructor(options: HotKeysOptions) {
    this.#options = options
    const { settings, journal, alarms, fleet, delivery } = options
    const { runtime, maxBacklogBytes } = settings
    const { slots } = this
    const clock = new DueClock(runtime.clock)
    const totals = new AccessTotals(
      (redisClusterId, slot) =>
        settings.nodeOfSlot(redisClusterId, slot) || this.autopilot.loads.nodeIdOf(redisClusterId, slot),
    )
    this.totals = totals
    const windows = openWindows({ ...settings, hashSeed: secretSeed(runtime), totals })
    const { engine } = windows
    this.engine = engine
    this.autopilot = new Autopilot({ totals, fleet, engine, record: journal.record.bind(journal) })
    const { levelNow, loads } = this.autopilot
    const review = new StrategyReview(engine, fleet)
    this.#review = review
    this.#capped = new CappedTable(delivery, alarms, settings.maxHotKeys)
    const deciding = {
      ...settings,
      clock,
      random: runtime.random,
      sink: this.#capped,
      totals,
      levelNow,
      processCount: (services: ReadonlySet<string>) => fleet.hosts.countOf(services),
      chooseStrategy:
        settings.chooseStrategy ??
        chooseByLoad(
          (redisClusterId, key) => review.loadOf(redisClusterId, key, clock.now()),
          (redisClusterId, key, name) => review.isGivenUp(redisClusterId, key, name, clock.now()),
        ),
      record: journal.record.bind(journal),
    }
    const { board } = journal.store
    if (board !== undefined) {
      const rulesInForce = () => this.#rules
      this.#shared = new SharedHub({ ...options, board, deciding, engine, totals, loads, review, rulesInForce })
    }
    const decider = this.#shared?.decider ?? new Decider(deciding)
    this.decider = decider
    const { timers } = runtime
    this.intake = windows.openIntake(
      { engine, decider, delivery, slots, totals, clock, alarms, timers, maxBacklogBytes },
      this.#rules,
    )
  }

  /** Hubs that share the store, this one included. */
  get hubCount(): number {
    return this.#shared?.hubCount ?? 1
  }

  /** The other hubs on the store, by name, with the processes that report to each. */
  get otherHubs(): readonly ({ readonly hubId: string; readonly processes: number } & OwnFigures)[] {
    return [...(this.#shared?.otherHubs ?? [])].map(([boardId, totals]) => ({
      hubId: hubIdOf(boardId),
      processes: processesIn(totals),
      ...figuresIn(totals),
    }))
  }

  /** Those of them that said that they are about to end. */
  get leavingHubs(): ReadonlySet<string> {
    const lasting = new Set<string>()
    const leaving = new Set(this.#shared?.leavingHubs)
    for (const boardId of this.#shared?.otherHubs.keys() ?? []) if (!leaving.has(boardId)) lasting.add(hubIdOf(boardId))
    // Restarted at once, it is there under the same name.
    return new Set([...leaving].map(hubIdOf).filter((hubId) => !lasting.has(hubId)))
  }

  /** True while this hub is cut off from the store that it shares, and decides by what it sees alone. */
  get isAlone(): boolean {
    return this.#shared?.isAway ?? false
  }

  /** False until the store has answered for the first time. */
  get isHeard(): boolean {
    return this.#shared?.isHeard ?? true
  }

  /** Resolves once the store has answered. */
  get heard(): Promise<void> {
    return this.#shared?.heard ?? Promise.resolve()
  }

  /** If hubs share a store: takes over their table. */
  async open(): Promise<void> {
    await this.#shared?.open()
  }

  start(): void {
    this.#shared?.start()
  }

  applyRules(all: RuleSet): Promise<void> {
    return this.intake.inTurn((now) => {
      const { delivery } = this.#options
      const set = this.autopilot.setRules(all)
      this.#rules = set
      // Before the engine, which tells the threads whether slots are needed.
      this.totals.setRules(all.rules)
      this.engine.setRules(set.rules)
      this.intake.setRules(set)
      this.decider.setRules(set.rules)
      for (const track of [...this.decider.active()]) this.#reconsider(track, now)
      delivery.setRules(set)
      delivery.flush()
    })
  }

  /** Restores keys that were hot before a restart, if their rule still exists. */
  restore(entries: readonly StoredEntry[], now: number): void {
    const { journal, settings, delivery } = this.#options
    for (const { entry, services } of entries) {
      // Written by a later version: it stays in the store for hubs that know it.
      if (!isKnownEntry(entry)) continue
      const found = this.#find(entry.redisClusterId, entry.key, services[0] ?? '', now)
      if (found?.track.rule?.id !== entry.ruleId || entry.until < now) {
        journal.saveEntries([], [entry])
        continue
      }
      const { heat, track } = found
      for (const service of services) track.addService(service)
      this.decider.restore(track, entry, now, settings.restartGraceMs)
      this.engine.consider(heat, track, now)
    }
    delivery.flush()
  }

  tick(): void {
    this.intake.inPassing((now) => {
      this.decider.tick(now)
      this.#options.delivery.flush()
    })
  }

  /** Called once a second, in turn with the reports. */
  keepHouse(now: number): void {
    const { delivery } = this.#options
    this.engine.sweep(now)
    this.#review.judge(this.decider, now)
    this.autopilot.tick(now)
    this.#capped.review(now)
    delivery.flush()
    this.intake.watch(now)
  }

  /** A process acted on its own crossing: the table confirms or revokes it. */
  takeClaim(instance: Instance, claim: ClaimPayload): void {
    void this.intake.inTurn((now) => {
      this.#judgeClaim(instance, claim, now)
      this.#options.delivery.flush()
    })
  }

  /** A process' measurements of nodes; in turn with the reports, because the two are compared. */
  takeLoad(nodes: readonly NodeLoad[], hostId: string): void {
    this.intake.inPassing((now) => this.autopilot.takeLoad(nodes, hostId, now))
  }

  /** Whether the process has reported the key, as far as is remembered for keys that matter. */
  hasReported({ instanceId }: Instance, { redisClusterId, key: text }: ClaimPayload): boolean {
    const key = parseKeyText(text)
    const near = key === undefined ? undefined : this.engine.get(redisClusterId, key)
    return near?.tracks.some((track) => track.hasReporter(instanceId)) ?? false
  }

  /** Tells a process that its claim does not hold. */
  takeBackClaim(instance: Instance, { redisClusterId, key: text, ruleId }: ClaimPayload, why: string): void {
    const { delivery, journal, fleet, settings } = this.#options
    const key = parseKeyText(text)
    if (key === undefined) return
    delivery.takeBack(instance.serviceId, redisClusterId, key)
    delivery.flush()
    const at = settings.runtime.clock.now()
    if (!fleet.bounds.mayRecord(instance, at)) return
    const sentence = `a claim of ${instance.hostId} under rule \`${ruleId}\` was withdrawn: ${why}`
    journal.record({ at, kind: 'rollback', redisClusterId, key: text, ruleId, text: sentence })
  }

  /** What a pre-warm job would do now; throws if it would have no effect. */
  planPrewarm(wish: PrewarmWish): PrewarmPlan {
    const { hosts } = this.#options.fleet
    return planPrewarm({ rules: this.#rules, clusters: hosts.clusters(), services: hosts.services() }, wish)
  }

  /** Pre-warms keys: each under the rule that matches it, held for the job's duration. */
  prewarm({ redisClusterId, keys, services, forMs, who }: PrewarmJob): PrewarmResult {
    const { fleet, delivery, settings } = this.#options
    const now = settings.runtime.clock.now()
    const targets = services.length > 0 ? services : fleet.hosts.services()
    const unmatched: string[] = []
    for (const key of keys) {
      // Services may have different rules for the key, and so different tracks.
      const found = new Map<HeatTrack, NearKey>()
      for (const service of targets.length > 0 ? targets : ['']) {
        const { heat, track } = this.#find(redisClusterId, key, service, now) ?? {}
        if (heat === undefined || track?.rule?.mode !== 'on' || actingLevel(track.rule) === undefined) continue
        if (service !== '' && !track.services.has(service)) track.addService(service)
        found.set(track, heat)
      }
      if (found.size === 0) unmatched.push(key)
      for (const [track, heat] of found) {
        this.decider.warm(track, `pre-warmed by ${who}`, now, forMs)
        this.engine.consider(heat, track, now)
      }
    }
    delivery.flush()
    return { warmed: keys.length - unmatched.length, unmatched }
  }

  /** Ends the hold of a key that was pre-warmed: it stays hot by its own heat alone. False if it is not hot. */
  endPrewarm(redisClusterId: string, key: string, who: string): boolean {
    const now = this.#options.settings.runtime.clock.now()
    const heat = this.engine.get(redisClusterId, key)
    if (heat === undefined) return false
    const hot = heat.tracks.filter(({ state }) => state !== undefined && state.phase !== 'warming')
    for (const track of hot) {
      this.decider.warm(track, `pre-warming was ended by ${who}`, now, 0)
      this.engine.consider(heat, track, now)
    }
    return hot.length > 0
  }

  /** The keys that are as hot now as their rule asks for: not those that are only held. */
  *burning(now: number): Generator<BurningKey> {
    const { levelNow } = this.autopilot
    for (const { track } of this.decider.handled()) {
      const level = track.rule && levelNow(track, track.rule.levels[0]!, now)
      if (level === undefined || !isEntered(level, readLevel(track, level, now, this.totals))) continue
      yield { redisClusterId: track.redisClusterId, key: track.key }
    }
  }

  /**
   * Resolves once every report so far is in the windows and, with several hubs, a full exchange with the others is
   * done.
   */
  async settled(): Promise<void> {
    await this.intake.inTurn(() => {})
    await this.#shared?.settled()
  }

  async close(): Promise<void> {
    await this.intake.inTurn(() => this.#options.delivery.flush())
    await this.intake.close()
    await this.#shared?.close()
  }

  /** Some of the services that share a track may now have their own rule. */
  #reconsider(track: HeatTrack, now: number): void {
    const { rules } = this.#rules
    const ruleOf = (service: string) => rules[this.#rules.match(track.redisClusterId, service, track.key)]
    const rule = [...track.services].map(ruleOf).find((found) => found?.id === track.rule?.id)
    for (const service of track.services) {
      if (rule !== undefined && ruleOf(service) !== rule) this.#options.delivery.removeService(track, service)
    }
    this.decider.reconsider(track, rule, now)
  }

  #judgeClaim(instance: Instance, { redisClusterId, ruleId, key: text, heat }: ClaimPayload, now: number) {
    const { delivery, journal, fleet } = this.#options
    const { serviceId, hostId } = instance
    const key = parseKeyText(text)
    if (key === undefined || !Number.isFinite(heat)) return
    const track = this.#find(redisClusterId, key, serviceId, now)?.track
    if (track?.rule?.id === ruleId && this.decider.confirmClaim(track, heat, now)) {
      if (!track.services.has(serviceId)) delivery.addService(track, serviceId)
      return
    }
    delivery.takeBack(serviceId, redisClusterId, key)
    if (!fleet.bounds.mayRecord(instance, now)) return
    const why = `a claim of ${hostId} under rule \`${ruleId}\` was withdrawn`
    journal.record({ at: now, kind: 'rollback', redisClusterId, key: text, ruleId, text: why })
  }

  /** The track of a key, by its name, for a service; undefined if there is no room for it. */
  #find(
    redisClusterId: string,
    key: string,
    serviceId: string,
    now: number,
  ): { readonly heat: NearKey; readonly track: HeatTrack } | undefined {
    const bytes = keyBytes(key)
    const heat = this.engine.find(redisClusterId, bytes, 0, bytes.length, now)
    return heat && { heat, track: this.engine.trackOf(heat, this.#rules.scope(redisClusterId, serviceId)) }
  }
}

/** On the board a hub has a separate name for each start, after the last dot. */
function hubIdOf(boardId: string): string {
  return boardId.slice(0, boardId.lastIndexOf('.'))
}
