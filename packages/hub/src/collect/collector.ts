import {
  BinaryReportCursor,
  type Clock,
  encodeBinaryReport,
  parseTextReport,
  type ReportRefusal,
  ReportRefusedError,
  type ReportTransport,
  type SectionSurvey,
  type TextReportVersion,
} from '@firebreak/core'
import type { KeyRedaction } from '@firebreak/core/node'
import { type AppGrant, anyApp, checkCluster, checkService, ScopeError } from '../access/credential.ts'
import type { AccessTotals } from '../decide/access-totals.ts'
import { type BarredSensors, SensorBarredError } from '../fleet/barred-sensors.ts'
import type { HostRegister, Instance } from '../fleet/host-register.ts'
import { idOf, type SensorBounds, SensorBoundsError } from '../fleet/sensor-bounds.ts'
import type { TokenProcesses } from '../fleet/token-processes.ts'
import type { TrafficMeter } from '../fleet/traffic-meter.ts'
import { IngestGovernor, type IngestGovernorOptions } from './ingest-governor.ts'
import { redactReport } from './redact-report.ts'
import type { AdmittedReport, ReportIntake } from './report-intake.ts'
import { spreadReport } from './spread-report.ts'

export interface CollectorOptions extends IngestGovernorOptions {
  readonly clock: Clock
  readonly intake: ReportIntake
  readonly totals: AccessTotals
  readonly hosts: HostRegister
  readonly traffic: TrafficMeter
  readonly bounds: SensorBounds
  readonly tokenProcesses: TokenProcesses
  readonly barred: BarredSensors
  readonly maxReportBytes: number
  readonly maxReportAgeMs: number
  readonly redactKey?: KeyRedaction | undefined
  /** A process of this service sent keys that had to be redacted. */
  readonly onRealNames?: (serviceId: string) => void
}

/**
 * Counts are dated to the middle of their interval: dated to its end, a steady key would have one interval too many in
 * every window. Bounded, because a report does not state the length of its interval.
 */
const maxHalfIntervalMs = 50

/** Where a report comes from. */
interface ReportWay {
  readonly sequence: number | undefined
  readonly grant: AppGrant
  /** The process that said hello on the connection. */
  readonly sender?: Instance | undefined
  readonly intervalMs?: number | undefined
  /** Undefined for what the hub reports to itself. */
  readonly by?: ReportTransport | undefined
}

/** Why reports were not counted: the refusals, reports that came twice or were not their sender's, and those without room. */
export type IngestCause = ReportRefusal | 'duplicate' | 'hosts-full' | 'overload' | 'scope' | 'bounds' | 'barred'

/**
 * Receives reports: refuses what is broken, too large or too old, by cause; dates the rest by the sensor's learned
 * clock offset; and passes it to the intake, which adds each entry to its key's window and has crossings decided and
 * sent.
 */
export class Collector {
  /** Sets the sensors' pace from the incoming load. */
  readonly governor: IngestGovernor
  readonly #options: CollectorOptions
  readonly #refused = new Map<IngestCause, number>()
  readonly #byTransport = new Map<ReportTransport, number>()
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

  /** The same, of one transport; what the hub reports to itself came by none. */
  reportCountBy(transport: ReportTransport): number {
    return this.#byTransport.get(transport) ?? 0
  }

  /**
   * Collects a binary report, which begins at `start`; throws `ReportRefusedError`. It comes from `sender`, the process
   * that said hello on its connection; without a connection, from the process that it names. `grant` says what it may
   * report, `by` which way it came.
   */
  collectBinary(
    bytes: Uint8Array,
    start: number,
    sequence: number,
    grant = anyApp,
    sender?: Instance,
    by?: ReportTransport,
  ): void {
    this.#guarded(() => {
      this.#checkSize(bytes.length - start)
      this.#collectRedacted(bytes, start, { sequence, grant, sender, by: sender === undefined ? by : 'websocket' })
    })
  }

  /** A text report; a sequence only where the sender gives one. */
  collectText(text: string, version: TextReportVersion, sequence?: number, grant = anyApp): void {
    this.#guarded(() => {
      this.#checkSize(text.length)
      const report = parseTextReport(text, version)
      const { intervalMs } = report
      this.#collectRedacted(encodeBinaryReport(report), 0, { sequence, grant, intervalMs, by: 'http' })
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

  /** What comes under real names is redacted before anything sees it. */
  #collectRedacted(bytes: Uint8Array, start: number, way: ReportWay): void {
    const { redactKey, onRealNames } = this.#options
    const redacted = redactKey && redactReport(bytes, start, redactKey)
    if (redacted === undefined) {
      this.#collect(bytes, start, way)
      return
    }
    onRealNames?.(new BinaryReportCursor(redacted).serviceId)
    this.#collect(redacted, 0, way)
  }

  #collect(bytes: Uint8Array, start: number, { sequence, grant, sender, intervalMs = 0, by }: ReportWay): void {
    const { intake } = this.#options
    // Accepted or refused as a whole: nothing is counted before all of it has been parsed.
    const sections = BinaryReportCursor.survey(bytes, start)
    const head = new BinaryReportCursor(bytes, start)
    checkScope(head, sections, grant, sender)
    const report = this.#admit(head, sections, bytes.length - start, sequence, grant)
    if (report === undefined) return
    const entries = sections.reduce((sum, { entryCount }) => sum + entryCount, 0)
    const total = sections.reduce((sum, { totalCount }) => sum + totalCount, 0)
    report.instance.takeInterval(intervalMs, total, report.now)
    if (by !== undefined) {
      report.instance.newestReport = { by, lagMs: report.now - report.at }
      this.#byTransport.set(by, this.reportCountBy(by) + 1)
    }
    this.#reportCount++
    this.#entryCount += entries
    this.governor.count(entries, report.now)
    const halfMs = Math.min(maxHalfIntervalMs, this.governor.pace.intervalMs / 2)
    for (const part of spreadReport(bytes, start, intervalMs) ?? [{ bytes, start, sections, agoMs: halfMs }]) {
      const taken = { ...report, at: report.at - part.agoMs, sections: part.sections }
      for (const section of part.sections) this.#countTotals(taken, section)
      intake.take(taken, part.bytes, part.start)
    }
  }

  #checkSize(length: number): void {
    const { maxReportBytes } = this.#options
    if (length <= maxReportBytes) return
    const limit = maxReportBytes.toLocaleString('en-US')
    throw new ReportRefusedError(
      'too-large',
      `report refused: it has ${length.toLocaleString('en-US')} bytes; the hub accepts ${limit} (maxReportBytes)`,
    )
  }

  /** Finds the report's process and its end; undefined if the report is a duplicate. */
  #admit(
    head: { collectTs: number; sendTs: number; serviceId: string; hostId: string; instanceId: string },
    sections: readonly SectionSurvey[],
    byteCount: number,
    sequence: number | undefined,
    grant: AppGrant,
  ): AdmittedReport | undefined {
    const { clock, hosts, intake, maxReportAgeMs } = this.#options
    if (!intake.hasRoom) {
      this.countRefusal('overload')
      return undefined
    }
    const now = clock.now()
    this.#options.barred.check(head)
    const instance = hosts.lookUp(head.serviceId, head.hostId, head.instanceId, now)
    const ageMs = instance.clock.ageMs(head.collectTs, head.sendTs, now)
    if (ageMs > maxReportAgeMs) {
      throw new ReportRefusedError(
        'expired',
        `report refused: it is ${Math.round(ageMs)} ms old; the hub accepts ${maxReportAgeMs} ms (maxReportAgeMs)`,
      )
    }
    this.#options.tokenProcesses.check(grant, idOf(instance), now)
    this.#checkBounds(grant, instance, sections, byteCount, now)
    // Only now, so that refused reports of invented processes do not fill the register.
    if (!hosts.add(instance)) {
      this.countRefusal('hosts-full')
      return undefined
    }
    if (sequence !== undefined && !instance.sequences.isNew(sequence, head.collectTs)) {
      this.countRefusal('duplicate')
      return undefined
    }
    for (const { redisClusterId } of sections) hosts.seeCluster(redisClusterId, now)
    return { instance, now, at: now - ageMs, sections }
  }

  #checkBounds(
    grant: AppGrant,
    instance: Instance,
    sections: readonly SectionSurvey[],
    byteCount: number,
    now: number,
  ): void {
    const { bounds, tokenProcesses } = this.#options
    try {
      bounds.checkReport(instance, sections, byteCount, now)
    } catch (error) {
      tokenProcesses.countCutOff(grant, idOf(instance), now)
      throw error
    }
  }

  #countTotals({ instance, at }: AdmittedReport, { redisClusterId, totalCount, writes }: SectionSurvey): void {
    const { totals, traffic } = this.#options
    totals.addReport(redisClusterId, instance.serviceId, at, totalCount)
    instance.accesses.add(at, totalCount)
    // A shield's status says who answered; a sensor without one counts what went to Redis.
    if (instance.lastStatusAt !== undefined) return
    traffic.add(at, at, { redis: totalCount - writes, local: 0, copies: 0, limited: 0, writes })
  }
}

/** Bounded as in a hello. */
const maxNameLength = 256

type ReportHead = Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>

/** The sender of a report is known by its connection or token; the report itself must agree. */
function checkScope(
  { serviceId, hostId, instanceId }: ReportHead,
  sections: readonly SectionSurvey[],
  grant: AppGrant,
  sender: Instance | undefined,
): void {
  const isOfSender =
    sender === undefined ||
    (sender.serviceId === serviceId && sender.hostId === hostId && sender.instanceId === instanceId)
  if (!isOfSender) throw new ScopeError('report refused: it names a different process than the one that said hello')
  for (const name of [serviceId, hostId, instanceId, ...sections.map(({ redisClusterId }) => redisClusterId)]) {
    if (name.length > maxNameLength)
      throw new ScopeError(`report refused: a name in it has more than ${maxNameLength} characters`)
  }
  checkService(grant, serviceId)
  for (const { redisClusterId } of sections) checkCluster(grant, redisClusterId)
}
