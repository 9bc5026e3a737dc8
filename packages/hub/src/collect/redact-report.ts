import { BinaryReportCursor, encodeBinaryReport, keyName, parseBinaryReport, type Report } from '@firebreak/core'
import type { KeyRedaction } from '@firebreak/core/node'

/** A report with keys under their outside names; undefined if it already has those. */
export function redactReport(bytes: Uint8Array, start: number, redact: KeyRedaction): Uint8Array | undefined {
  if (!hasOtherNames(bytes, start, redact)) return undefined
  return encodeBinaryReport(redactParsed(parseBinaryReport(bytes.subarray(start)), redact))
}

/** Keys with the same outside name become one entry. */
function redactParsed(report: Report, redact: KeyRedaction): Report {
  const sections = report.sections.map(({ entries, ...section }) => {
    const byName = new Map<string, { key: string; count: number; writes: number; bytes: number }>()
    for (const { key, count, writes, bytes } of entries) {
      const name = redact(key)
      const sum = byName.get(name) ?? { key: name, count: 0, writes: 0, bytes: 0 }
      byName.set(name, { key: name, count: sum.count + count, writes: sum.writes + writes, bytes: sum.bytes + bytes })
    }
    return { ...section, entries: [...byName.values()] }
  })
  return { ...report, sections }
}

function hasOtherNames(bytes: Uint8Array, start: number, redact: KeyRedaction): boolean {
  const cursor = new BinaryReportCursor(bytes, start)
  while (cursor.nextSection()) {
    while (cursor.nextEntry()) {
      const name = keyName(bytes.subarray(cursor.keyStart, cursor.keyEnd))
      if (redact(name) !== name) return true
    }
  }
  return false
}
