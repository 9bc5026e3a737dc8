import { ByteWriter, parseBinaryReport, type Report, writeReportEntry, writeReportRange } from '@firebreak/core'

/** Who reports. */
export interface Reporter {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
}

/** The counts of one cluster, in the form in which they will be sent. */
export interface PendingSection {
  readonly redisClusterId: string
  readonly totalCount: number
  readonly entryCount: number
  /** The entries as `writeReportEntry` writes them. */
  readonly entries: Uint8Array
}

/**
 * A report that waits to be sent. Its entries are encoded as they are drained: a busy process has thousands of them ten
 * times a second, and an object for each would cost more than counting.
 */
export interface PendingReport {
  readonly collectTs: number
  readonly sections: readonly PendingSection[]
}

/** Writes the entries of a section one by one. */
export class SectionWriter {
  readonly #redisClusterId: string
  readonly #writer = new ByteWriter(4096)
  #entryCount = 0

  constructor(redisClusterId: string) {
    this.#redisClusterId = redisClusterId
  }

  add(key: string, count: number, writes: number, bytes: number): void {
    this.#entryCount++
    writeReportEntry(this.#writer, key, count, writes, bytes)
  }

  /** As `add`; the key stands in `bytes` from `start` to `end`. */
  addRange(bytes: Uint8Array, start: number, end: number, count: number, writes: number, byteCount: number): void {
    this.#entryCount++
    writeReportRange(this.#writer, bytes, start, end, count, writes, byteCount)
  }

  finish(totalCount: number): PendingSection {
    const entries = this.#writer.finish()
    return { redisClusterId: this.#redisClusterId, totalCount, entryCount: this.#entryCount, entries }
  }
}

/** The payload of a `report` frame (see core's `report/binary-report.ts`). */
export function encodePending(report: PendingReport, { serviceId, hostId, instanceId }: Reporter, sendTs: number) {
  const size = report.sections.reduce((sum, { entries }) => sum + entries.length, 512)
  const writer = new ByteWriter(size)
  writer.varint(report.collectTs)
  writer.varint(sendTs)
  for (const id of [serviceId, hostId, instanceId]) writer.text(id)
  writer.varint(report.sections.length)
  for (const { redisClusterId, totalCount, entryCount, entries } of report.sections) {
    writer.text(redisClusterId)
    writer.varint(totalCount)
    writer.varint(entryCount)
    writer.raw(entries)
  }
  return writer.finish()
}

/** The report as an object, for the text form. */
export function decodePending(report: PendingReport, reporter: Reporter, sendTs: number): Report {
  return parseBinaryReport(encodePending(report, reporter, sendTs))
}
