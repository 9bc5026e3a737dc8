import { FirebreakError } from '../errors/firebreak-error.ts'

/** What one sensor counted of one key in one interval. */
export interface ReportEntry {
  /** The key's name (see `keys/key-text.ts`). */
  readonly key: string
  /** Accesses: reads and writes. */
  readonly count: number
  readonly writes: number
  /** Bytes of replies and written values, if the sensor knows them. */
  readonly bytes: number
}

/** The entries of one Redis cluster in a report. */
export interface ReportSection {
  readonly redisClusterId: string
  readonly entries: readonly ReportEntry[]
  /**
   * All accesses to this cluster in the interval, including sampled-out ones.
   * @default the sum of the entries
   */
  readonly totalCount?: number
}

/** One sensor's counts of one interval. */
export interface Report {
  /** When the interval ended, in milliseconds since 1970 by the sensor's clock. */
  readonly collectTs: number
  /** When the report was sent, by the sensor's clock. */
  readonly sendTs: number
  readonly serviceId: string
  readonly hostId: string
  /** Identifies the process; several may share a host. @default the host's id */
  readonly instanceId: string
  /** How long the counts cover, if a text report says so: they are spread over it. @default a single moment */
  readonly intervalMs?: number
  readonly sections: readonly ReportSection[]
}

/** Why a report was refused. */
export type ReportRefusal = 'unparsable' | 'expired' | 'too-large' | 'version'

/** A report was refused as a whole, with the position and the reason. */
export class ReportRefusedError extends FirebreakError {
  /** The cause, as named by the counters. */
  readonly refusal: ReportRefusal
  /** The line of a text report, or the byte of a binary one. */
  readonly position: number | undefined

  constructor(cause: ReportRefusal, message: string, position?: number) {
    super('FB_REPORT_REFUSED', message)
    this.refusal = cause
    this.position = position
  }
}
