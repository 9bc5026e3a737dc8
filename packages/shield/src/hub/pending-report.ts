import {
  maxFrameHeadBytes,
  parseBinaryReport,
  type Report,
  VarintWriter,
  writeFrameHead,
  writeReportEntry,
  writeReportRange,
} from '@firebreak/core'

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
 * A report waiting to be sent. Its entries are encoded as they are drained: a busy process has thousands of them ten
 * times a second, and an object for each would cost more than counting.
 */
export interface PendingReport {
  readonly collectTs: number
  readonly sections: readonly PendingSection[]
}

/** Writes the entries of one section after another, always in the same memory. */
export class SectionWriter {
  #writer = new VarintWriter(leastBytes)
  #entryCount = 0

  add(key: string, count: number, writes: number, bytes: number): void {
    this.#entryCount++
    writeReportEntry(this.#writer, key, count, writes, bytes)
  }

  /** Like `add`, for a key in `bytes` from `start` to `end`. */
  addRange(bytes: Uint8Array, start: number, end: number, count: number, writes: number, byteCount: number): void {
    this.#entryCount++
    writeReportRange(this.#writer, bytes, start, end, count, writes, byteCount)
  }

  /** Adds `keys` entries that are already encoded. */
  addPiece(bytes: Uint8Array, start: number, end: number, keys: number): void {
    this.#entryCount += keys
    this.#writer.raw(bytes.subarray(start, end))
  }

  /** The section of what was added since the last call. */
  finish(redisClusterId: string, totalCount: number): PendingSection {
    const section = { redisClusterId, totalCount, entryCount: this.#entryCount, entries: this.#writer.finish() }
    this.#entryCount = 0
    if (section.entries.length > keptBytes) this.#writer = new VarintWriter(leastBytes)
    else this.#writer.clear()
    return section
  }
}

const leastBytes = 4096
const keptBytes = 1 << 20

/** A whole `report` frame. */
export function encodeReportFrame(
  report: PendingReport,
  reporter: Reporter,
  sequence: number,
  sendTs: number,
): Uint8Array {
  const writer = new VarintWriter(sizeOf(report) + maxFrameHeadBytes)
  writeFrameHead(writer, 'report', sequence)
  writePending(writer, report, reporter, sendTs)
  return writer.view()
}

/** The report as an object, for the text form. */
export function decodePending(report: PendingReport, reporter: Reporter, sendTs: number): Report {
  const writer = new VarintWriter(sizeOf(report))
  writePending(writer, report, reporter, sendTs)
  return parseBinaryReport(writer.view())
}

function sizeOf({ sections }: PendingReport): number {
  return sections.reduce((sum, { entries }) => sum + entries.length, 512)
}

/** The payload of a `report` frame (see core's `report/binary-report.ts`). */
function writePending(
  writer: VarintWriter,
  report: PendingReport,
  { serviceId, hostId, instanceId }: Reporter,
  sendTs: number,
): void {
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
}
