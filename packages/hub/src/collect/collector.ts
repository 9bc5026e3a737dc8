import {
  BinaryReportCursor,
  type Clock,
  keyBytes,
  parseTextReport,
  type ReportRefusal,
  ReportRefusedError,
  type RuleScope,
  type RuleSet,
  sectionTotal,
  type TextReportVersion,
} from '@firebreak/core'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { HeatDecider } from '../decide/heat-decider.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HeatEngine } from '../heat/heat-engine.ts'
import type { SlotHeat } from '../heat/slot-heat.ts'
import type { HostRegister, Instance } from '../hosts/host-register.ts'
import type { TrafficMeter } from '../traffic/traffic-meter.ts'
import type { IngestGovernor } from './ingest-governor.ts'

export interface CollectorParts {
  readonly clock: Clock
  readonly engine: HeatEngine
  readonly decider: HeatDecider
  readonly delivery: TableDelivery
  readonly totals: AccessTotals
  readonly slots: SlotHeat
  readonly hosts: HostRegister
  readonly traffic: TrafficMeter
  readonly governor: IngestGovernor
  readonly maxReportBytes: number
  readonly maxReportAgeMs: number
}

/**
 * Counts of an interval are dated to its middle: dated to its end, a steady key would have an interval too many in every
 * window. Bounded, since a report does not tell how long its interval was.
 */
const maxHalfIntervalMs = 50

/** Why reports were not counted: the refusals, and reports that came twice. */
export type IngestCause = ReportRefusal | 'duplicate' | 'hosts-full'

/** One report on its way into the windows. */
interface Intake {
  readonly instance: Instance
  readonly now: number
  /** The middle of the report's interval, by the hub's clock. */
  readonly at: number
  entries: number
}

/**
 * Takes reports in: refuses what is broken, too large or too old, by cause; dates the rest by the sensor's learnt clock
 * offset; adds each entry to its key's window; and has a crossing decided and sent before it returns.
 */
export class Collector {
  readonly #parts: CollectorParts
  readonly #refused = new Map<IngestCause, number>()
  #rules: RuleSet
  #reportCount = 0
  #entryCount = 0

  constructor(parts: CollectorParts, rules: RuleSet) {
    this.#parts = parts
    this.#rules = rules
  }

  get refused(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refused)
  }

  /** Reports counted since start. */
  get reportCount(): number {
    return this.#reportCount
  }

  get entryCount(): number {
    return this.#entryCount
  }

  setRules(rules: RuleSet): void {
    this.#rules = rules
  }

  /** A binary report, which begins at `start`; throws `ReportRefusedError`. */
  collectBinary(bytes: Uint8Array, start: number, sequence: number): void {
    this.#guarded(() => {
      this.#checkSize(bytes.length - start)
      // Refused whole or taken whole: nothing is counted before all of it has been seen to parse.
      BinaryReportCursor.validate(bytes, start)
      const cursor = new BinaryReportCursor(bytes, start)
      const intake = this.#admit(cursor, sequence)
      if (intake === undefined) return
      while (cursor.nextSection()) {
        const scope = this.#startSection(intake, cursor.redisClusterId, cursor.totalCount)
        let writes = 0
        while (cursor.nextEntry()) {
          writes += cursor.writes
          const { keyStart, keyEnd, count, byteCount } = cursor
          this.#entry(intake, cursor.redisClusterId, scope, bytes, keyStart, keyEnd, count, cursor.writes, byteCount)
        }
        this.#endSection(intake, cursor.totalCount, writes)
      }
      this.#finish(intake)
    })
  }

  /** A text report; a sequence only where the sender gives one. */
  collectText(text: string, version: TextReportVersion, sequence?: number): void {
    this.#guarded(() => {
      this.#checkSize(text.length)
      const report = parseTextReport(text, version)
      const intake = this.#admit(report, sequence)
      if (intake === undefined) return
      for (const section of report.sections) {
        const total = sectionTotal(section)
        const scope = this.#startSection(intake, section.redisClusterId, total)
        let allWrites = 0
        for (const { key, count, writes, bytes } of section.entries) {
          allWrites += writes
          const raw = keyBytes(key)
          this.#entry(intake, section.redisClusterId, scope, raw, 0, raw.length, count, writes, bytes)
        }
        this.#endSection(intake, total, allWrites)
      }
      this.#finish(intake)
    })
  }

  /** Counts a refusal that was found outside, such as an unknown version. */
  countRefusal(cause: IngestCause): void {
    this.#refused.set(cause, (this.#refused.get(cause) ?? 0) + 1)
  }

  #guarded(take: () => void): void {
    try {
      take()
    } catch (error) {
      if (error instanceof ReportRefusedError) this.countRefusal(error.refusal)
      throw error
    }
  }

  #checkSize(length: number): void {
    const { maxReportBytes } = this.#parts
    if (length <= maxReportBytes) return
    const limit = maxReportBytes.toLocaleString('en-US')
    throw new ReportRefusedError(
      'too-large',
      `report refused: it has ${length.toLocaleString('en-US')} bytes, the hub takes ${limit} (maxReportBytes)`,
    )
  }

  /** Finds the report's process and its age; undefined where the report came before. */
  #admit(
    head: { collectTs: number; sendTs: number; serviceId: string; hostId: string; instanceId: string },
    sequence: number | undefined,
  ): Intake | undefined {
    const { clock, hosts, governor, maxReportAgeMs } = this.#parts
    const now = clock.now()
    const instance = hosts.find(head.serviceId, head.hostId, head.instanceId, now)
    if (instance === undefined) {
      this.countRefusal('hosts-full')
      return undefined
    }
    const ageMs = instance.clock.ageMs(head.collectTs, head.sendTs, now)
    if (ageMs > maxReportAgeMs) {
      throw new ReportRefusedError(
        'expired',
        `report refused: it is ${Math.round(ageMs)} ms old, the hub takes ${maxReportAgeMs} ms (maxReportAgeMs)`,
      )
    }
    if (sequence !== undefined && !instance.sequences.isNew(sequence, head.collectTs)) {
      this.countRefusal('duplicate')
      return undefined
    }
    return { instance, now, at: now - ageMs - Math.min(maxHalfIntervalMs, governor.pace.intervalMs / 2), entries: 0 }
  }

  #startSection({ instance, at }: Intake, redisClusterId: string, total: number): RuleScope {
    this.#parts.totals.addReport(redisClusterId, instance.serviceId, at, total)
    instance.accesses.add(at, total)
    return this.#rules.scope(redisClusterId, instance.serviceId)
  }

  #entry(
    intake: Intake,
    redisClusterId: string,
    scope: RuleScope,
    bytes: Uint8Array,
    start: number,
    end: number,
    count: number,
    writes: number,
    byteCount: number,
  ): void {
    const { engine, decider, delivery, totals, slots } = this.#parts
    const { instance, at, now } = intake
    intake.entries++
    const heat = engine.add(redisClusterId, bytes, start, end, count, now)
    const slot = engine.lastSlot
    if (slot < 0) return
    slots.add(redisClusterId, slot, count, now)
    totals.addEntry(redisClusterId, slot, at, count)
    if (heat === undefined) return
    const track = engine.trackOf(heat, scope)
    track.add(at, count, writes, byteCount)
    if (!track.services.has(instance.serviceId)) delivery.addService(track, instance.serviceId)
    decider.onHeat(track, now)
    engine.consider(heat, track, now)
    heat.detail?.add(at, count, writes, byteCount, instance.instanceId, instance)
  }

  #endSection({ instance, at }: Intake, total: number, writes: number): void {
    // A shield's status tells who answered; a sensor without one counts what went to Redis.
    if (instance.lastStatusAt !== undefined) return
    this.#parts.traffic.add(at, at, { redis: total - writes, local: 0, copies: 0, limited: 0, writes })
  }

  #finish({ entries, now }: Intake): void {
    const { governor, delivery } = this.#parts
    this.#reportCount++
    this.#entryCount += entries
    governor.count(entries, now)
    delivery.flush()
  }
}
