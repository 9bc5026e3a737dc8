import { plainText } from './plain-text.ts'

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** The cell's text; undefined leaves it empty. */
  readonly text: (row: Row, index: number) => string | undefined
  /** @default 'left' */
  readonly align?: 'left' | 'right'
  /** May be cut with … where the terminal is too narrow. */
  readonly isFlexible?: boolean
}

/** Rows as aligned columns; columns that are empty in every row are left out. `width` 0 means no limit. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width = 0): string {
  const cells = rows.map((row, index) => columns.map((column) => plainText(column.text(row, index) ?? '')))
  const shown = columns.map((_column, index) => cells.some((row) => row[index] !== ''))
  const used = columns.flatMap((column, index) => (shown[index] ? [{ column, index }] : []))
  const widths = used.map(({ column, index }) =>
    Math.max(lengthOf(column.title), ...cells.map((row) => lengthOf(row[index]!))),
  )
  fit(
    widths,
    used.map(({ column }) => column),
    width,
  )
  const line = (texts: readonly string[]) =>
    used
      .map(({ column }, place) => {
        const text = cut(texts[place]!, widths[place]!)
        const space = ' '.repeat(Math.max(0, widths[place]! - lengthOf(text)))
        return column.align === 'right' ? space + text : text + space
      })
      .join('  ')
      .trimEnd()
  const lines = [
    line(used.map(({ column }) => column.title)),
    ...cells.map((row) => line(used.map(({ index }) => row[index]!))),
  ]
  return `${lines.join('\n')}\n`
}

/** Takes what is too much from the flexible columns. */
function fit<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  if (width <= 0) return
  let excess = widths.reduce((sum, one) => sum + one, 0) + 2 * (widths.length - 1) - width
  columns.forEach((column, index) => {
    if (!column.isFlexible || excess <= 0) return
    const taken = Math.min(excess, Math.max(0, widths[index]! - 16))
    widths[index]! -= taken
    excess -= taken
  })
}

function cut(text: string, width: number): string {
  const letters = [...text]
  return letters.length <= width ? text : `${letters.slice(0, width - 1).join('')}…`
}

function lengthOf(text: string): number {
  let length = 0
  for (const _letter of text) length++
  return length
}
