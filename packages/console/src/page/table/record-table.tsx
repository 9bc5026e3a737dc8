import type { ComponentChildren } from 'preact'
import { t } from '../text/text.ts'
import { ScrollFrame } from './scroll-frame.tsx'
import { steadyOrder } from './steady-order.ts'
import { useHold } from './use-hold.ts'

/** One column of a table of records. */
export interface RecordColumn<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly isNumber?: boolean
  /** Left out on a phone. */
  readonly isMinor?: boolean
  /** Keeps its width: the others share what is left. */
  readonly isTight?: boolean
}

interface RecordTableProps<Row> {
  readonly label: string
  readonly columns: readonly RecordColumn<Row>[]
  readonly rows: readonly Row[] | undefined
  readonly id: (row: Row) => string
  readonly empty: string
  readonly error?: string | undefined
  readonly rowClass?: (row: Row) => string | undefined
}

/**
 * Records as a table, with a sentence where there are none. The last rows stay where the hub does not answer, and rows keep
 * their places under the pointer and the focus. On a phone a row becomes a card, each cell under its title (table.css).
 */
export function RecordTable<Row>({ label, columns, rows, id, empty, error, rowClass }: RecordTableProps<Row>) {
  const { isHeld, order, props } = useHold(rows === undefined || rows.length === 0)
  if (error !== undefined && rows === undefined) return <p class="problem">{error}</p>
  if (rows === undefined) return <p class="empty">{t('Loading …')}</p>
  if (rows.length === 0) return <p class="empty">{empty}</p>
  const shown = isHeld ? steadyOrder(order.current, rows, id) : rows
  order.current = shown.map(id)
  const className = ({ isNumber, isMinor, isTight }: RecordColumn<Row>) =>
    [isNumber && 'number', isMinor && 'minor', isTight && 'tight'].filter(Boolean).join(' ') || undefined
  return (
    <>
      {error !== undefined && <p class="problem">{error}</p>}
      <ScrollFrame label={label}>
        <table class="records">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title} class={className(column)}>
                  {column.title || <span class="unseen">{t('Actions')}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody {...props}>
            {shown.map((row) => (
              <tr key={id(row)} class={rowClass?.(row)}>
                {columns.map((column) => (
                  <td key={column.title} class={className(column)} data-title={column.title}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollFrame>
    </>
  )
}
