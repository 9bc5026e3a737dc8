import { plainText } from '@firebreak/core'
import { cutText, widthOf } from './text-width.ts'

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** The cell's text; undefined leaves it empty. */
  readonly text: (row: Row, index: number) => string | undefined
  /** @default 'left' */
  readonly align?: 'left' | 'right'
  /** The first to be cut with … if the terminal is too narrow; other text columns follow. */
  readonly isFlexible?: boolean
}

/**
 * The maximum width of a text column if nothing limits the table: one key of 400 letters must not shift all other rows.
 */
const maxUnboundedWidth = 60

/** Rows as aligned columns; columns that are empty in every row are left out. `width` 0 means no limit. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width = 0): string {
  const cells = rows.map((row, index) => columns.map((column) => plainText(column.text(row, index) ?? '')))
  const shown = columns.map((_column, index) => cells.some((row) => row[index] !== ''))
  const used = columns.flatMap((column, index) => (shown[index] ? [{ column, index }] : []))
  const widths = used.map(({ column, index }) => {
    const longest = Math.max(widthOf(column.title), ...cells.map((row) => widthOf(row[index]!)))
    return column.align !== 'right' && width <= 0 ? Math.min(longest, maxUnboundedWidth) : longest
  })
  fit(
    widths,
    used.map(({ column }) => column),
    width,
  )
  const line = (texts: readonly string[]) =>
    used
      .map(({ column }, place) => {
        // If nothing limits the width, the output may be parsed by columns: a long text is printed in full on its own
        // line.
        const text = width > 0 ? cutText(texts[place]!, widths[place]!) : texts[place]!
        const space = ' '.repeat(Math.max(0, widths[place]! - widthOf(text)))
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

/** The minimum width of a column: a date with a time of day stays whole in an inflexible one. */
const [leastFlexible, leastOther] = [16, 24]

/** Takes the excess from the flexible columns, then from other text columns: names of services can be long too. */
function fit<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  if (width <= 0) return
  let excess = widths.reduce((sum, one) => sum + one, 0) + 2 * (widths.length - 1) - width
  for (const isFlexible of [true, false]) {
    columns.forEach((column, index) => {
      if (column.align === 'right' || (column.isFlexible ?? false) !== isFlexible || excess <= 0) return
      const taken = Math.min(excess, Math.max(0, widths[index]! - (isFlexible ? leastFlexible : leastOther)))
      widths[index]! -= taken
      excess -= taken
    })
  }
}
