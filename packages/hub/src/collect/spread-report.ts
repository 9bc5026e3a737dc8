import { BinaryReportCursor, encodeBinaryReport, parseBinaryReport, type SectionSurvey } from '@firebreak/core'

/** A part of a report that counts as one moment. */
export interface ReportPart {
  readonly bytes: Uint8Array
  readonly start: number
  readonly sections: readonly SectionSurvey[]
  /** How long before the report's end it is. */
  readonly agoMs: number
}

/** A fifth of the shortest window: reports of a second each that are not quite on time hardly change its sum. */
const sliceMs = 200
const maxSlices = 60

/**
 * Splits a report over a long interval into reports of a fifth of a second each (or a sixtieth of it, if longer), oldest
 * first, as if its counts had been spread evenly. Undefined if it is as short as others.
 */
export function spreadReport(bytes: Uint8Array, start: number, intervalMs: number): ReportPart[] | undefined {
  const count = Math.min(maxSlices, Math.ceil(intervalMs / sliceMs))
  if (count < 2) return undefined
  const whole = parseBinaryReport(bytes.subarray(start))
  const partOf = (total: number, slice: number) =>
    Math.floor((total * (slice + 1)) / count) - Math.floor((total * slice) / count)
  return Array.from({ length: count }, (_, slice) => {
    const sections = whole.sections.map(({ redisClusterId, entries, totalCount }) => ({
      redisClusterId,
      entries: entries.flatMap(({ key, count: accesses, writes, bytes: size }) => {
        const own = { count: partOf(accesses, slice), writes: partOf(writes, slice), bytes: partOf(size, slice) }
        // A few writes may fall into other slices than their accesses.
        return own.count === 0 ? [] : [{ key, ...own, writes: Math.min(own.writes, own.count) }]
      }),
      ...(totalCount !== undefined && { totalCount: partOf(totalCount, slice) }),
    }))
    const part = encodeBinaryReport({ ...whole, sections })
    const agoMs = ((count - slice - 0.5) * intervalMs) / count
    return { bytes: part, start: 0, sections: BinaryReportCursor.survey(part, 0), agoMs }
  })
}
