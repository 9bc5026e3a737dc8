import { keyBytes, keyName } from '../keys/key-text.ts'
import { type Report, type ReportEntry, ReportRefusedError, type ReportSection } from './report.ts'
import { sectionTotal } from './text-report.ts'
import { VarintReader, VarintWriter } from './varint.ts'

/**
 * The binary form of a report: the payload of a `report` frame (see `wire/frame.ts`).
 *
 *     varint collectTs   varint sendTs
 *     text serviceId   text hostId   text instanceId          text = varint length, bytes
 *     varint sections, and for each:
 *       text redisClusterId
 *       varint totalCount                                      all accesses, sampled-away ones included
 *       varint entries, and for each:
 *         varint keyLength   key bytes
 *         varint count << 1 | hasDetail
 *         if hasDetail: varint writes   varint bytes
 *
 * Most entries are reads of unknown size, so the detail is one bit. The hub walks a report with `BinaryReportCursor`
 * without allocating an object per entry; `parseBinaryReport` builds the whole report, for tests and small tools.
 */
export function encodeBinaryReport(report: Report): Uint8Array {
  const writer = new VarintWriter(256)
  writer.varint(report.collectTs)
  writer.varint(report.sendTs)
  writer.text(report.serviceId)
  writer.text(report.hostId)
  writer.text(report.instanceId)
  writer.varint(report.sections.length)
  for (const section of report.sections) {
    writer.text(section.redisClusterId)
    writer.varint(sectionTotal(section))
    writer.varint(section.entries.length)
    for (const entry of section.entries) writeReportEntry(writer, entry.key, entry.count, entry.writes, entry.bytes)
  }
  return writer.finish()
}

/** Writes one entry; sensors that stream their counts call it without creating a `ReportEntry`. */
export function writeReportEntry(
  writer: VarintWriter,
  key: string,
  count: number,
  writes: number,
  bytes: number,
): void {
  // A name that contains U+0000 may be the binary form; any other is written unchanged.
  if (key.charCodeAt(0) === 0) {
    const raw = keyBytes(key)
    writer.varint(raw.length)
    writer.raw(raw)
  } else {
    writer.text(key)
  }
  writeCounts(writer, count, writes, bytes)
}

/** Like `writeReportEntry`, for a key in `bytes` from `start` to `end`. */
export function writeReportRange(
  writer: VarintWriter,
  bytes: Uint8Array,
  start: number,
  end: number,
  count: number,
  writes: number,
  byteCount: number,
): void {
  writer.range(bytes, start, end)
  writeCounts(writer, count, writes, byteCount)
}

function writeCounts(writer: VarintWriter, count: number, writes: number, bytes: number): void {
  if (writes === 0 && bytes === 0) {
    writer.varint(count * 2)
    return
  }
  writer.varint(count * 2 + 1)
  writer.varint(writes)
  writer.varint(bytes)
}

/** A section of a report, without its entries. */
export interface SectionSurvey {
  readonly redisClusterId: string
  readonly totalCount: number
  readonly entryCount: number
  readonly writes: number
}

/** Walks a binary report: header first, then section by section, entry by entry, all fields in place. */
export class BinaryReportCursor {
  readonly collectTs: number
  readonly sendTs: number
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  redisClusterId = ''
  totalCount = 0
  /** The current key: `bytes.subarray(keyStart, keyEnd)`. */
  keyStart = 0
  keyEnd = 0
  count = 0
  writes = 0
  byteCount = 0
  readonly #reader: VarintReader
  #sectionsLeft: number
  #entriesLeft = 0

  constructor(bytes: Uint8Array, start = 0) {
    const reader = new VarintReader(bytes, start)
    this.#reader = reader
    this.collectTs = reader.varint()
    this.sendTs = reader.varint()
    this.serviceId = reader.text()
    this.hostId = reader.text()
    this.instanceId = reader.text()
    this.#sectionsLeft = reader.varint()
    if (this.serviceId === '' || this.hostId === '' || this.instanceId === '') reader.isBroken = true
    this.check()
  }

  get bytes(): Uint8Array {
    return this.#reader.bytes
  }

  /** Moves to the next section; false at the end of the report. */
  nextSection(): boolean {
    this.check()
    if (this.#sectionsLeft === 0) return false
    this.#sectionsLeft--
    this.redisClusterId = this.#reader.text()
    this.totalCount = this.#reader.varint()
    this.#entriesLeft = this.#reader.varint()
    this.check()
    return true
  }

  /** Moves to the next entry of the section; false at its end, or if the bytes end early. */
  nextEntry(): boolean {
    const reader = this.#reader
    if (this.#entriesLeft === 0 || reader.isBroken) return false
    this.#entriesLeft--
    const length = reader.varint()
    this.keyStart = reader.skip(length)
    this.keyEnd = reader.position
    const packed = reader.varint()
    this.count = Math.floor(packed / 2)
    if (packed % 2 === 1) {
      this.writes = reader.varint()
      this.byteCount = reader.varint()
      if (this.writes > this.count) reader.isBroken = true
    } else {
      this.writes = 0
      this.byteCount = 0
    }
    return !reader.isBroken
  }

  /** Throws if the bytes ended early or were malformed. */
  check(): void {
    if (!this.#reader.isBroken) return
    const { position } = this.#reader
    throw new ReportRefusedError(
      'unparsable',
      `report refused, byte ${position}: the binary report is truncated or malformed`,
      position,
    )
  }

  /**
   * Walks the whole report once, since it is accepted or refused as a whole: at some tens of nanoseconds per entry,
   * that is cheaper than being able to undo an entry. Returns each section without its entries.
   */
  static survey(bytes: Uint8Array, start = 0): SectionSurvey[] {
    const cursor = new BinaryReportCursor(bytes, start)
    const sections: SectionSurvey[] = []
    while (cursor.nextSection()) {
      const { redisClusterId, totalCount } = cursor
      let entryCount = 0
      let writes = 0
      while (cursor.nextEntry()) {
        entryCount++
        writes += cursor.writes
      }
      sections.push({ redisClusterId, totalCount, entryCount, writes })
    }
    cursor.check()
    if (!cursor.#reader.isAtEnd) {
      const { position } = cursor.#reader
      throw new ReportRefusedError('unparsable', `report refused, byte ${position}: bytes after its end`, position)
    }
    return sections
  }
}

/** The whole report as an object. */
export function parseBinaryReport(bytes: Uint8Array): Report {
  BinaryReportCursor.survey(bytes)
  const cursor = new BinaryReportCursor(bytes)
  const sections: ReportSection[] = []
  while (cursor.nextSection()) {
    const entries: ReportEntry[] = []
    const { redisClusterId, totalCount } = cursor
    while (cursor.nextEntry()) {
      const key = keyName(bytes.subarray(cursor.keyStart, cursor.keyEnd))
      entries.push({ key, count: cursor.count, writes: cursor.writes, bytes: cursor.byteCount })
    }
    sections.push({ redisClusterId, totalCount, entries })
  }
  const { collectTs, sendTs, serviceId, hostId, instanceId } = cursor
  return { collectTs, sendTs, serviceId, hostId, instanceId, sections }
}
