import type { CommandIo } from '../command/command.ts'
import { type FlatRecord, type OutputFormat, renderCsv, renderNdjson } from './records.ts'
import { type Column, renderTable } from './table.ts'

/** The switches that choose a format, for `parseArgs`. */
export const formatOptions = {
  json: { type: 'boolean', default: false },
  ndjson: { type: 'boolean', default: false },
  csv: { type: 'boolean', default: false },
} as const

/** The lines of a command's help about them. */
export const formatHelp = '  --json, --ndjson, --csv  data instead of a table'

/** Which of them was given. */
export type FormatValues = { readonly [format in keyof typeof formatOptions]: boolean }

/** Prints rows in the requested format. */
export function printRecords<Row extends object>(
  io: CommandIo,
  values: FormatValues,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  emptyText: string,
): void {
  const format: OutputFormat = values.json ? 'json' : values.ndjson ? 'ndjson' : values.csv ? 'csv' : 'table'
  switch (format) {
    case 'json':
      io.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
      return
    case 'ndjson':
      io.stdout.write(renderNdjson(rows))
      return
    case 'csv':
      io.stdout.write(renderCsv(rows.map((row, index) => flatten(columns, row, index))))
      return
    case 'table':
      io.stdout.write(
        rows.length === 0 ? `${emptyText}\n` : renderTable(columns, rows, io.stdout.isTTY ? io.stdout.columns : 0),
      )
  }
}

function flatten<Row>(columns: readonly Column<Row>[], row: Row, index: number): FlatRecord {
  return Object.fromEntries(columns.map((column) => [column.title.toLowerCase(), column.text(row, index)]))
}
