import { keyName, type TableEntry } from '@firebreak/core'
import type { SectionWriter } from '../hub/pending-report.ts'
import type { AccessVisitor } from './access-log.ts'
import type { ReportSampler } from './report-sampler.ts'

/**
 * Takes an interval's counts into a section of a report, those that the sampler sends. `entryOf` is asked what the table
 * has of a key; undefined where it has nothing of any.
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
