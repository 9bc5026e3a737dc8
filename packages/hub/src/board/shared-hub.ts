import { keyBytes } from '@firebreak/core'
import type { RuleSet } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { NodeLoads } from '../auto/node-loads.ts'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { DeciderOptions } from '../decide/decider.ts'
import type { StrategyReview } from '../decide/strategy-review.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { figureTotals, type OwnFigures } from '../fleet/hub-figures.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import type { ResolvedCoreOptions } from '../hub-options.ts'
import type { RuleBook } from '../rules/rule-book.ts'
import { compareLines, headOf, restoredLine } from '../store/change-line.ts'
import type { HubState } from '../store/hub-store.ts'
import type { Journal } from '../store/journal.ts'
import { explainStoreTrouble, sharedName } from '../store/store-trouble.ts'
import { BoardExchange } from './board-exchange.ts'
import type { BoardSync, HeatBoard } from './heat-board.ts'
import { SharedDecider } from './shared-decider.ts'
import { measuringOf, type TrackName } from './track-id.ts'

export interface SharedHubOptions {
  readonly settings: ResolvedCoreOptions
  /** Names the store; changes if it lost everything, empty until it has answered. */
  readonly epoch: string
  readonly board: HeatBoard
  readonly deciding: DeciderOptions
  readonly journal: Journal
  readonly book: RuleBook
  readonly rulesInForce: () => RuleSet
  readonly engine: NearKeys
  readonly totals: AccessTotals
  readonly loads: NodeLoads
  readonly review: StrategyReview
  readonly fleet: Fleet
  readonly delivery: TableDelivery
  readonly alarms: AlarmBoard
  /** What this hub tells the others of itself. */
  readonly ownFigures: () => OwnFigures
}

/** Among a hub's totals: it is about to end. */
const leavingName = 'leaving\u0000'

/** How often a hot key that nobody touches any more is evaluated. */
const recheckMs = 500
/** How long the alarm shows that the store lost its data and was rewritten. */
const resetShownMs = 60_000

/**
 * One of several hubs on a store: follows their shared state, and reports when the store is unreachable or was lost.
 */
export class SharedHub {
  readonly decider: SharedDecider
  readonly #options: SharedHubOptions
  readonly #exchange: BoardExchange
  /** Resolves once the store's rules and switch are known here. */
  readonly heard: Promise<void>
  readonly #setHeard: () => void
  readonly #boardId: string
  #storeEpoch: string
  #hubCount = 1
  #otherHubs: BoardSync['otherHubs'] = new Map()
  #isAway = false
  #resetAt = Number.NEGATIVE_INFINITY
  #divergedAt = Number.NEGATIVE_INFINITY

  constructor(options: SharedHubOptions) {
    this.#options = options
    this.#storeEpoch = options.epoch
    const { promise, resolve } = Promise.withResolvers<void>()
    this.heard = promise
    this.#setHeard = resolve
    if (this.isHeard) resolve()
    const { board, deciding, delivery, totals, loads, fleet, review, settings } = options
    const { hubId, runtime, tickMs, entryTtlMs, restartGraceMs: graceMs } = settings
    const { hosts, effects } = fleet
    // Never the same twice: a restarted hub must not overwrite its former windows with empty ones.
    const boardId = `${hubId}.${runtime.newId().slice(0, 8)}`
    this.decider = new SharedDecider({
      ...deciding,
      board,
      boardId,
      effects,
      onGivenUp: ({ redisClusterId, key }, name, at) => review.giveUp(redisClusterId, key, name, at),
      findTrack: (name) => this.#findTrack(name),
      isUnknownRule: (id) => options.rulesInForce().unknownIds.includes(id),
      onHot: (track) => this.#showTrack(track),
      urge: () => this.#exchange.urge(),
    })
    this.#boardId = boardId
    this.#exchange = new BoardExchange({
      board,
      decider: this.decider,
      settings: { hubId: boardId, entryTtlMs, graceMs, recheckMs },
      runtime,
      tickMs,
      totals: (now) => ({
        ...totals.own(now),
        ...hosts.own(now),
        ...loads.own(),
        ...figureTotals(options.ownFigures()),
      }),
      onSync: (sync) => this.#onSync(sync),
      onDecided: () => delivery.flush(),
      onTrouble: (error) => this.#onTrouble(error),
    })
  }

  /** Hubs that share the store, this one included. */
  get hubCount(): number {
    return this.#hubCount
  }

  /** The others, by name, with their latest totals. */
  get otherHubs(): BoardSync['otherHubs'] {
    return this.#otherHubs
  }

  /** Those of them that are about to end. */
  get leavingHubs(): readonly string[] {
    return [...this.#otherHubs].flatMap(([boardId, totals]) => (leavingName in totals ? [boardId] : []))
  }

  /** False until the store has answered for the first time: this hub then knows neither rules nor switch. */
  get isHeard(): boolean {
    return this.#storeEpoch !== ''
  }

  /** True while the store is unreachable. */
  get isAway(): boolean {
    return this.#isAway
  }

  /** Loads the table. */
  open(): Promise<void> {
    return this.#exchange.open()
  }

  start(): void {
    this.#exchange.start()
  }

  /** Resolves once everything in flight to and from the board has arrived. */
  settled(): Promise<void> {
    return this.#exchange.settled()
  }

  /** Ends this hub, and says so to the others, who would otherwise miss it. */
  async close(): Promise<void> {
    await this.#exchange.close()
    if (this.#isAway) return
    await this.#options.board.sync(this.#boardId, { [leavingName]: 1 }).catch(() => {})
  }

  async #onSync({ epoch, rulesVersion, isOff, newestChange, otherHubs }: BoardSync): Promise<void> {
    const { engine, totals, loads, fleet, book, delivery, journal } = this.#options
    this.#hubCount = otherHubs.size + 1
    this.#otherHubs = otherHubs
    engine.setHubCount(this.#hubCount)
    this.decider.setOtherHubs([...otherHubs.keys()])
    totals.setOthers([...otherHubs.values()])
    fleet.hosts.setOthers([...otherHubs.values()])
    loads.setOthers([...otherHubs.values()])
    const isOther = this.isHeard && epoch !== this.#storeEpoch
    if (!this.isHeard || isOther || newestChange !== headOf(book.line) || rulesVersion !== book.list().version)
      await this.#follow(isOther)
    // A switch thrown here that is not in the store yet takes precedence.
    else if (isOff !== delivery.isOff && !journal.isSwitchPending) delivery.setOff(isOff)
  }

  /**
   * The store's rules differ from ours: either others changed them, or the store was rolled back (see
   * `change-line.ts`).
   */
  async #follow(isOther: boolean): Promise<void> {
    const { journal, book, delivery, settings } = this.#options
    const state = await journal.store.load()
    const relation = compareLines(book.line, state.line)
    const isOlder = relation === 'behind' || relation === 'older'
    if (relation === 'older' || relation === 'newer') await this.#setAside(state, isOlder)
    if (isOlder && !(await this.#writeBack(state))) return
    if (isOther || isOlder) {
      this.#exchange.distrust()
      this.#resetAt = settings.runtime.clock.now()
      settings.logger.warn({ store: journal.store.name, relation }, 'the store lost data and was rewritten')
    }
    const now = isOlder ? await journal.store.load() : state
    this.#storeEpoch = now.epoch
    await book.take(now)
    if (!journal.isSwitchPending) delivery.setOff(now.isOff)
    this.#setHeard()
  }

  /** Our line is newer: it overwrites the store's and continues both. False if another hub was faster. */
  #writeBack(state: HubState): Promise<boolean> {
    const { journal, book, delivery, settings } = this.#options
    const { runtime } = settings
    const { rules, version } = book.list()
    const instead = headOf(state.line)
    const line = restoredLine(book.line, instead, runtime.clock.now(), runtime.newId().slice(0, 8))
    const rulesVersion = Math.max(version, state.rulesVersion) + 1
    const { isOff } = delivery
    return journal.store.restore!({ rules, rulesVersion, isOff, line, instead })
  }

  /** Diverging histories: the losing rules are kept in the audit, and users are notified. */
  async #setAside(state: HubState, isOurs: boolean): Promise<void> {
    const { journal, book, delivery, alarms, settings } = this.#options
    const own = { rules: book.list().rules, isOff: delivery.isOff }
    const stored = { rules: state.rules, isOff: state.isOff }
    const [lost, kept] = isOurs ? [stored, own] : [own, stored]
    await journal.audit(settings.hubId, 'conflicting rules were set aside', lost, kept)
    const cause = 'the shared store lost data, and its rules differ from those in force'
    const retry = 'the rules with the latest change are in force; the others are in the audit (before): compare both'
    this.#divergedAt = settings.runtime.clock.now()
    alarms.raise({ id: 'rules-diverged', severity: 'warning', cause, retry })
  }

  #findTrack({ redisClusterId, ruleId, measuring, key }: TrackName): HeatTrack | undefined {
    const { rulesInForce, engine, settings } = this.#options
    const rules = rulesInForce()
    const wanted = rules.rules.find(({ id }) => id === ruleId)
    if (wanted === undefined || measuringOf(wanted) !== measuring) return undefined
    const bytes = keyBytes(key)
    const heat = engine.find(redisClusterId, bytes, 0, bytes.length, settings.runtime.clock.now())
    const serviceId = wanted.serviceId === '*' ? '' : wanted.serviceId
    const track = heat && engine.trackOf(heat, rules.scope(redisClusterId, serviceId))
    return track?.rule?.id === ruleId ? track : undefined
  }

  #showTrack(track: HeatTrack): void {
    const { engine, settings } = this.#options
    const heat = engine.get(track.redisClusterId, track.key)
    if (heat !== undefined) engine.consider(heat, track, settings.runtime.clock.now())
  }

  #onTrouble(error: Error | undefined): void {
    const { alarms, journal, settings } = this.#options
    const { logger } = settings
    const now = settings.runtime.clock.now()
    if (error !== undefined) {
      const [store, why] = [sharedName(journal.store) ?? 'the store', explainStoreTrouble(error)]
      const cause = this.isHeard
        ? `${store} failed: ${why}`
        : `${store} has not answered since this hub started, so it knows neither rules nor switch: ${why}`
      const retry = this.isHeard
        ? 'hot keys stay hot, and each hub decides by what it sees itself; retrying'
        : 'sensors are refused and keep their last table, or move to another hub; retrying'
      alarms.raise({ id: 'board', severity: 'critical', cause, retry })
      if (!this.#isAway) logger.warn({ error: error.message }, 'the Redis that the hubs share failed')
    } else if (this.#isAway) {
      alarms.clear('board')
      logger.info({}, 'the Redis that the hubs share has recovered')
    }
    this.#isAway = error !== undefined
    if (now - this.#resetAt < resetShownMs) {
      const cause = 'the Redis that the hubs share lost data; history and audit since then may be gone'
      const retry =
        'rules, switch and hot keys were restored from the hubs’ memory; enable persistence (appendonly yes)'
      alarms.raise({ id: 'board-reset', severity: 'warning', cause, retry })
    } else {
      alarms.clear('board-reset')
    }
    if (now - this.#divergedAt >= resetShownMs) alarms.clear('rules-diverged')
  }
}
