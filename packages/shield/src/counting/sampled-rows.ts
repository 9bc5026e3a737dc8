import { keyName, type TableEntry } from '@firebreak/core'
import type { SectionWriter } from '../hub/pending-report.ts'
import type { AccessVisitor } from './access-log.ts'
import type { ReportSampler } from './report-sampler.ts'

/**
 * Adds the counts that the sampler sends to a section of a report. `entryOf` looks up a key in the table; undefined if
 * the table has no keys.
 */
export function sampledRows(
  section: SectionWriter,
  sampler: ReportSampler,
  entryOf: ((key: string) => TableEntry | undefined) | undefined,
): Omit<AccessVisitor, 'onCrossing' | 'takesPieces'> {
  return {
    byName: (key, count, writes, bytes) => {
      if (!sampler.sample(entryOf?.(key), count, writes, bytes)) return
      section.add(key, sampler.count, sampler.writes, sampler.bytes)
    },
    byBytes: (bytes, start, end, count, writes, byteCount) => {
      if (!sampler.isSampling) {
        section.addRange(bytes, start, end, count, writes, byteCount)
        return
      }
      const entry = entryOf?.(keyName(bytes.subarray(start, end)))
      if (!sampler.sample(entry, count, writes, byteCount)) return
      section.addRange(bytes, start, end, sampler.count, sampler.writes, sampler.bytes)
    },
    byPiece: (bytes, start, end, keys) => section.addPiece(bytes, start, end, keys),
  }
}
