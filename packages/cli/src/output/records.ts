/** A flat record for NDJSON and CSV. */
export type FlatRecord = Readonly<Record<string, string | number | boolean | undefined>>

/** One JSON object per line. */
export function renderNdjson(records: readonly object[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('')
}

/** Comma-separated values as in RFC 4180; the columns are all those in any record, in order of appearance. */
export function renderCsv(records: readonly FlatRecord[]): string {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))]
  const lines = [
    columns.join(','),
    ...records.map((record) => columns.map((column) => csvCell(record[column])).join(',')),
  ]
  return `${lines.join('\r\n')}\r\n`
}

function csvCell(value: string | number | boolean | undefined): string {
  if (value === undefined) return ''
  const text = String(value)
  // A spreadsheet would run a cell that begins like this as a formula.
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The formats in which a command prints data. */
export type OutputFormat = 'table' | 'json' | 'ndjson' | 'csv'

/** The format chosen by the switches. */
export function outputFormat(values: ReadonlyMap<string, string>): OutputFormat {
  for (const format of ['json', 'ndjson', 'csv'] as const) if (values.has(format)) return format
  return 'table'
}
