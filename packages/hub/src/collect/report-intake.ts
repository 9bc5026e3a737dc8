import { BinaryReportCursor, type Clock, type SectionSurvey } from '@firebreak/core'
import type { RuleSet } from '@firebreak/core/rules'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { HeatDecider } from '../decide/heat-decider.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { Instance } from '../fleet/host-register.ts'
import type { CountedClusters } from '../heat/counted-clusters.ts'
import type { CountListener, NearRow } from '../heat/counted-keys.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import type { SlotHeat } from '../heat/slot-heat.ts'

/** An accepted report. */
export interface AdmittedReport {
  readonly instance: Instance
  readonly now: number
  /** The middle of the report's interval, by the hub's clock. */
  readonly at: number
  readonly sections: readonly SectionSurvey[]
}

/** Adds reports to the windows and has them decided: in this thread, or with the help of others. */
export interface ReportIntake {
  /** The report is `bytes` from `start` to the end; the bytes are not kept. */
  take(report: AdmittedReport, bytes: Uint8Array, start: number): void
  /**
   * Runs `turn` once every earlier report is in the windows and before any later one; at once if none is in progress.
   * `now` is the time of this call, however late the turn runs.
   */
  inTurn(turn: (now: number) => void): Promise<void>
  /** The same for a turn that changes nothing that other threads depend on. */
  inPassing(turn: (now: number) => void): void
  setRules(rules: RuleSet): void
  /** False while so much is in progress that reports are refused. */
  readonly hasRoom: boolean
  /** Called once a second: ends alarms whose cause is long gone. */
  watch(now: number): void
  /** How busy the busiest other thread was since the last call, 0 to 1. */
  load(): number
  close(): Promise<void>
}

export interface IntakeRooms {
  readonly engine: NearKeys
  readonly decider: HeatDecider
  readonly delivery: TableDelivery
  readonly totals: AccessTotals
  readonly slots: SlotHeat
  readonly clock: Clock
}

/** The last step for every entry whose key is near: its track, the decision, and what is shown. */
export class NearIntake {
  readonly #rooms: Pick<IntakeRooms, 'engine' | 'decider' | 'delivery'>
  rules: RuleSet

  constructor(rooms: Pick<IntakeRooms, 'engine' | 'decider' | 'delivery'>, rules: RuleSet) {
    this.#rooms = rooms
    this.rules = rules
  }

  /** False if the key does not matter after all. */
  take(
    { instance, at, now }: AdmittedReport,
    redisClusterId: string,
    bytes: Uint8Array,
    row: NearRow<NearKey>,
  ): boolean {
    const { engine, decider, delivery } = this.#rooms
    const heat = engine.take(redisClusterId, bytes, row, now)
    if (heat === undefined) return false
    const { count, writes, byteCount } = row
    const { serviceId, instanceId } = instance
    const track = engine.trackOf(heat, this.rules.scope(redisClusterId, serviceId))
    track.add(at, count, writes, byteCount)
    if (instance.intervalMs > 0) track.awaitNext(instance.intervalMs, now)
    if (!track.services.has(serviceId)) delivery.addService(track, serviceId)
    if (track.addReporter(instanceId)) delivery.widen(track)
    decider.onHeat(track, now)
    engine.consider(heat, track, now)
    heat.lastMinute?.add(at, count, writes, byteCount, instanceId, instance)
    return true
  }
}

/** Does everything in this thread: a crossing is decided and sent before `take` returns. */
export class LocalIntake implements ReportIntake, CountListener<NearKey> {
  readonly hasRoom = true
  readonly wantsPast = false
  readonly #rooms: IntakeRooms
  readonly #counts: CountedClusters<NearKey>
  readonly #near: NearIntake
  /** The current section. */
  #report: AdmittedReport | undefined
  #bytes: Uint8Array = new Uint8Array(0)
  #redisClusterId = ''
  #slotCounts: Float64Array | undefined

  constructor(rooms: IntakeRooms, counts: CountedClusters<NearKey>, rules: RuleSet) {
    this.#rooms = rooms
    this.#counts = counts
    this.#near = new NearIntake(rooms, rules)
  }

  get nearRate(): number {
    return this.#rooms.engine.nearRate
  }

  setRules(rules: RuleSet): void {
    this.#near.rules = rules
  }

  take(report: AdmittedReport, bytes: Uint8Array, start: number): void {
    const { slots, delivery } = this.#rooms
    const cursor = new BinaryReportCursor(bytes, start)
    this.#report = report
    this.#bytes = bytes
    while (cursor.nextSection()) {
      const { redisClusterId } = cursor
      this.#redisClusterId = redisClusterId
      this.#slotCounts = slots.counts(redisClusterId, report.now)
      const keys = this.#counts.keysOf(redisClusterId, report.now)
      if (keys === undefined) while (cursor.nextEntry());
      else keys.addSection(cursor, report.now, this)
    }
    delivery.flush()
  }

  onRow(row: NearRow<NearKey>): void {
    this.#near.take(this.#report!, this.#redisClusterId, this.#bytes, row)
  }

  onSlot(slot: number, count: number): void {
    if (this.#slotCounts !== undefined) this.#slotCounts[slot]! += count
    const { totals } = this.#rooms
    if (totals.wantsSlots) totals.addEntry(this.#redisClusterId, slot, this.#report!.at, count)
  }

  inTurn(turn: (now: number) => void): Promise<void> {
    turn(this.#rooms.clock.now())
    return Promise.resolve()
  }

  inPassing(turn: (now: number) => void): void {
    turn(this.#rooms.clock.now())
  }

  watch(): void {}

  load(): number {
    return 0
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
