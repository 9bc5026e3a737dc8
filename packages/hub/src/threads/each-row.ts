import type { AdmittedReport } from '../collect/report-intake.ts'
import type { NearRow } from '../heat/counted-keys.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { ReportBatch } from './report-batch.ts'
import { rowFields, type ThreadAnswer } from './thread-messages.ts'

/** How far one thread's rows have been read. */
interface RowReader {
  readonly rows: Float64Array
  at: number
}

/**
 * Visits the rows of a batch in the order of their entries, whichever thread sent them. `row` is reused for each; its
 * key is all of `key`, valid until the next.
 */
export function eachRow(
  batch: ReportBatch,
  row: NearRow<NearKey>,
  visit: (report: AdmittedReport, redisClusterId: string, key: Uint8Array, row: NearRow<NearKey>) => void,
): void {
  const readers: RowReader[] = batch.answers
    .filter((answer): answer is ThreadAnswer => answer !== undefined)
    .map(({ rows }) => ({ rows, at: 0 }))
  for (let reader = firstOf(readers); reader !== undefined; reader = firstOf(readers)) {
    const { rows, at } = reader
    reader.at += rowFields
    const number = rows[at]!
    const report = batch.reports[number]!
    const key = batch.view(number, rows[at + 2]!, rows[at + 3]!)
    row.keyEnd = key.length
    row.count = rows[at + 4]!
    row.writes = rows[at + 5]!
    row.byteCount = rows[at + 6]!
    row.heat = rows[at + 7]!
    row.windowMs = rows[at + 8]!
    row.nearHeat = rows[at + 9]!
    row.past.set(rows.subarray(at + 10, at + rowFields))
    visit(report, report.sections[rows[at + 1]!]!.redisClusterId, key, row)
  }
}

function firstOf(readers: readonly RowReader[]): RowReader | undefined {
  let first: RowReader | undefined
  for (const reader of readers) {
    if (reader.at < reader.rows.length && (first === undefined || isBefore(reader, first))) first = reader
  }
  return first
}

/** By report, then by the position of the key: sections are consecutive. */
function isBefore({ rows: a, at: atA }: RowReader, { rows: b, at: atB }: RowReader): boolean {
  return a[atA]! < b[atB]! || (a[atA] === b[atB] && a[atA + 2]! < b[atB + 2]!)
}
