import { randomBytes } from 'node:crypto'
import { keyBytes, type Rule, type RuleSet } from '@firebreak/core'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { AlarmBoard } from '../decide/alarm-board.ts'
import type { DeciderOptions } from '../decide/decider.ts'
import type { StrategyReview } from '../decide/strategy-review.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { TieredHeatEngine } from '../heat/tiered-heat-engine.ts'
import type { HostRegister } from '../hosts/host-register.ts'
import type { ResolvedCoreOptions } from '../hub-options.ts'
import type { HubStore } from '../store/hub-store.ts'
import type { KeyEffects } from '../traffic/key-effects.ts'
import { BoardExchange } from './board-exchange.ts'
import type { BoardSync, HeatBoard } from './heat-board.ts'
import { SharedDecider } from './shared-decider.ts'
import { measuringOf, type TrackName } from './track-id.ts'

/** What a hub shares, and its own parts that follow. */
export interface SharedHubParts {
  readonly store: HubStore
  readonly board: HeatBoard
  readonly options: ResolvedCoreOptions
  readonly deciding: DeciderOptions
  readonly engine: TieredHeatEngine
  readonly delivery: TableDelivery
  readonly totals: AccessTotals
  readonly alarms: AlarmBoard
  readonly hosts: HostRegister
  readonly effects: KeyEffects
  readonly review: StrategyReview
  readonly rules: () => { readonly rules: readonly Rule[]; readonly version: number }
  readonly ruleSet: () => RuleSet
  /** Takes the rules of the store. */
  readonly loadRules: () => Promise<void>
}

/** A hot key that nobody touches any more is looked at so often. */
const recheckMs = 500
/** How long it is told that the store lost its data and was written again. */
const resetShownMs = 60_000

/** One of several hubs on a store: follows what is common to them, and says when the store is away or was lost. */
export class SharedHub {
  readonly decider: SharedDecider
  readonly #parts: SharedHubParts
  readonly #exchange: BoardExchange
  #storeEpoch: string
  #hubCount = 1
  #isAway = false
  #resetAt = Number.NEGATIVE_INFINITY

  constructor(parts: SharedHubParts, storeEpoch: string) {
    this.#parts = parts
    this.#storeEpoch = storeEpoch
    const { board, deciding, delivery, totals, hosts, effects, review, options } = parts
    const { hubId, clock, timers, tickMs, entryTtlMs, restartGraceMs: graceMs } = options
    // Never twice the same: a hub that comes back must not write its empty windows over those of its former self.
    const boardId = `${hubId}.${randomBytes(4).toString('hex')}`
    this.decider = new SharedDecider({
      ...deciding,
      board,
      boardId,
      effects,
      onGivenUp: ({ redisClusterId, key }, name, at) => review.giveUp(redisClusterId, key, name, at),
      findTrack: (name) => this.#findTrack(name),
      onHot: (track) => this.#showTrack(track),
      urge: () => this.#exchange.urge(),
    })
    this.#exchange = new BoardExchange({
      board,
      decider: this.decider,
      settings: { hubId: boardId, entryTtlMs, graceMs, recheckMs },
      clock,
      timers,
      tickMs,
      totals: (now) => ({ ...totals.own(now), ...hosts.own() }),
      onSync: (sync) => this.#onSync(sync),
      onDecided: () => delivery.flush(),
      onTrouble: (error) => this.#onTrouble(error),
    })
  }

  /** Hubs that share the store, this one included. */
  get hubCount(): number {
    return this.#hubCount
  }

  /** Loads the table. */
  open(): Promise<void> {
    return this.#exchange.open()
  }

  start(): void {
    this.#exchange.start()
  }

  /** Resolves once what is under way to the board and from it has arrived. */
  settled(): Promise<void> {
    return this.#exchange.settled()
  }

  close(): Promise<void> {
    return this.#exchange.close()
  }

  async #onSync({ epoch, rulesVersion, isOff, otherHubs }: BoardSync): Promise<void> {
    const { engine, totals, hosts, rules, loadRules, delivery } = this.#parts
    this.#hubCount = otherHubs.size + 1
    engine.setHubCount(this.#hubCount)
    this.decider.setOtherHubs([...otherHubs.keys()])
    totals.setOthers([...otherHubs.values()])
    hosts.setOthers([...otherHubs.values()])
    if (epoch !== this.#storeEpoch) {
      await this.#recover()
      return
    }
    if (rulesVersion !== rules().version) await loadRules()
    if (isOff !== delivery.isOff) delivery.setOff(isOff)
  }

  /** The store lost everything: this hub, or another, writes it again from memory. */
  async #recover(): Promise<void> {
    const { store, rules: rulesOf, delivery, loadRules, options } = this.#parts
    const { rules, version } = rulesOf()
    const isWriter = await store.restore!({ rules, rulesVersion: version, isOff: delivery.isOff })
    this.#storeEpoch = (await store.load()).epoch
    await loadRules()
    this.#exchange.distrust()
    this.#resetAt = options.clock.now()
    options.logger.warn({ store: store.name, isWriter }, 'the store lost its data and was written again')
  }

  #findTrack({ redisClusterId, ruleId, measuring, key }: TrackName): HeatTrack | undefined {
    const { ruleSet, engine, options } = this.#parts
    const wanted = ruleSet().rules.find(({ id }) => id === ruleId)
    if (wanted === undefined || measuringOf(wanted) !== measuring) return undefined
    const bytes = keyBytes(key)
    const heat = engine.find(redisClusterId, bytes, 0, bytes.length, options.clock.now())
    const serviceId = wanted.serviceId === '*' ? '' : wanted.serviceId
    const track = heat && engine.trackOf(heat, ruleSet().scope(redisClusterId, serviceId))
    return track?.rule?.id === ruleId ? track : undefined
  }

  #showTrack(track: HeatTrack): void {
    const { engine, options } = this.#parts
    const heat = engine.get(track.redisClusterId, track.key)
    if (heat !== undefined) engine.consider(heat, track, options.clock.now())
  }

  #onTrouble(error: Error | undefined): void {
    const { alarms, options } = this.#parts
    const now = options.clock.now()
    if (error !== undefined) {
      const cause = `the Redis that the hubs share failed: ${error.message}`
      const retry = 'hot keys stay hot and each hub decides by what it sees alone; it is tried again all the time'
      alarms.raise({ id: 'board', severity: 'critical', cause, retry }, now)
      if (!this.#isAway) options.logger.warn({ error: error.message }, 'the Redis that the hubs share failed')
    } else if (this.#isAway) {
      alarms.clear('board')
      options.logger.info({}, 'the Redis that the hubs share is back')
    }
    this.#isAway = error !== undefined
    if (now - this.#resetAt < resetShownMs) {
      const cause = 'the Redis that the hubs share lost its data; history and audit before that are gone'
      const retry =
        'rules, switch and hot keys were written again from the hubs’ memory; give it a disk (appendonly yes)'
      alarms.raise({ id: 'board-reset', severity: 'warning', cause, retry }, now)
    } else {
      alarms.clear('board-reset')
    }
  }
}
