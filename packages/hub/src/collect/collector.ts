import {
  BinaryReportCursor,
  type Clock,
  encodeBinaryReport,
  parseTextReport,
  type ReportRefusal,
  ReportRefusedError,
  type SectionSurvey,
  type TextReportVersion,
} from '@firebreak/core'
import { type AppGrant, anyApp, checkCluster, checkService, ScopeError } from '../access/credential.ts'
import type { AccessTotals } from '../decide/access-totals.ts'
import { type BarredSensors, SensorBarredError } from '../fleet/barred-sensors.ts'
import type { HostRegister, Instance } from '../fleet/host-register.ts'
import { type SensorBounds, SensorBoundsError } from '../fleet/sensor-bounds.ts'
import type { TrafficMeter } from '../fleet/traffic-meter.ts'
import { IngestGovernor, type IngestGovernorOptions } from './ingest-governor.ts'
import type { AdmittedReport, ReportIntake } from './report-intake.ts'

export interface CollectorOptions extends IngestGovernorOptions {
  readonly clock: Clock
  readonly intake: ReportIntake
  readonly totals: AccessTotals
  readonly hosts: HostRegister
  readonly traffic: TrafficMeter
  readonly bounds: SensorBounds
  readonly barred: BarredSensors
  readonly maxReportBytes: number
  readonly maxReportAgeMs: number
}

/**
 * Counts of an interval are dated to its middle: dated to its end, a steady key would have an interval too many in every
 * window. Bounded, since a report does not tell how long its interval was.
 */
const maxHalfIntervalMs = 50

/** Why reports were not counted: the refusals, reports that came twice or were not their sender's, and those without room. */
export type IngestCause = ReportRefusal | 'duplicate' | 'hosts-full' | 'overload' | 'scope' | 'bounds' | 'barred'

/**
 * Takes reports in: refuses what is broken, too large or too old, by cause; dates the rest by the sensor's learnt clock
 * offset; and hands it to the intake, which adds each entry to its key's window and has a crossing decided and sent.
 */
export class Collector {
  /** Sets the sensors' pace from what comes in. */
  readonly governor: IngestGovernor
  readonly #options: CollectorOptions
  readonly #refused = new Map<IngestCause, number>()
  #reportCount = 0
  #entryCount = 0

  constructor(options: CollectorOptions) {
    this.#options = options
    this.governor = new IngestGovernor(options)
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

  /**
   * A binary report, which begins at `start`; throws `ReportRefusedError`. It is `sender`'s, the process that said hello on
   * its connection; where there is no connection, that of the process it names. `grant` says of what it may speak.
   */
  collectBinary(bytes: Uint8Array, start: number, sequence: number, grant = anyApp, sender?: Instance): void {
    this.#guarded(() => {
      this.#checkSize(bytes.length - start)
      this.#collect(bytes, start, sequence, grant, sender)
    })
  }

  /** A text report; a sequence only where the sender gives one. */
  collectText(text: string, version: TextReportVersion, sequence?: number, grant = anyApp): void {
    this.#guarded(() => {
      this.#checkSize(text.length)
      this.#collect(encodeBinaryReport(parseTextReport(text, version)), 0, sequence, grant)
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
      if (error instanceof ScopeError) this.countRefusal('scope')
      if (error instanceof SensorBoundsError) this.countRefusal('bounds')
      if (error instanceof SensorBarredError) this.countRefusal('barred')
      throw error
    }
  }

  #collect(bytes: Uint8Array, start: number, sequence: number | undefined, grant: AppGrant, sender?: Instance): void {
    const { intake } = this.#options
    // Refused whole or taken whole: nothing is counted before all of it has been seen to parse.
    const sections = BinaryReportCursor.survey(bytes, start)
    const head = new BinaryReportCursor(bytes, start)
    checkScope(head, sections, grant, sender)
    const report = this.#admit(head, sections, sequence)
    if (report === undefined) return
    let entries = 0
    for (const section of sections) {
      entries += section.entryCount
      this.#countTotals(report, section)
    }
    this.#reportCount++
    this.#entryCount += entries
    this.governor.count(entries, report.now)
    intake.take(report, bytes, start)
  }

  #checkSize(length: number): void {
    const { maxReportBytes } = this.#options
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
    sections: readonly SectionSurvey[],
    sequence: number | undefined,
  ): AdmittedReport | undefined {
    const { clock, hosts, intake, maxReportAgeMs } = this.#options
    if (!intake.hasRoom) {
      this.countRefusal('overload')
      return undefined
    }
    const now = clock.now()
    this.#options.barred.check(head)
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
    this.#options.bounds.checkReport(instance, sections, now)
    if (sequence !== undefined && !instance.sequences.isNew(sequence, head.collectTs)) {
      this.countRefusal('duplicate')
      return undefined
    }
    for (const { redisClusterId } of sections) hosts.seeCluster(redisClusterId, now)
    return { instance, now, at: now - ageMs - Math.min(maxHalfIntervalMs, this.governor.pace.intervalMs / 2), sections }
  }

  #countTotals({ instance, at }: AdmittedReport, { redisClusterId, totalCount, writes }: SectionSurvey): void {
    const { totals, traffic } = this.#options
    totals.addReport(redisClusterId, instance.serviceId, at, totalCount)
    instance.accesses.add(at, totalCount)
    // A shield's status tells who answered; a sensor without one counts what went to Redis.
    if (instance.lastStatusAt !== undefined) return
    traffic.add(at, at, { redis: totalCount - writes, local: 0, copies: 0, limited: 0, writes })
  }
}

/** As in a hello. */
const maxNameLength = 256

type ReportHead = Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>

/** Who sent a report is known by its connection or its token; what the report itself says of it must agree. */
function checkScope(
  { serviceId, hostId, instanceId }: ReportHead,
  sections: readonly SectionSurvey[],
  grant: AppGrant,
  sender: Instance | undefined,
): void {
  const isOfSender =
    sender === undefined ||
    (sender.serviceId === serviceId && sender.hostId === hostId && sender.instanceId === instanceId)
  if (!isOfSender) throw new ScopeError('report refused: it names another process than the one that said hello')
  for (const name of [serviceId, hostId, instanceId, ...sections.map(({ redisClusterId }) => redisClusterId)]) {
    if (name.length > maxNameLength)
      throw new ScopeError(`report refused: a name in it has more than ${maxNameLength} characters`)
  }
  checkService(grant, serviceId)
  for (const { redisClusterId } of sections) checkCluster(grant, redisClusterId)
}
