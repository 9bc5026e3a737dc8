/** One column of a table of records. */
export interface RecordColumn<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  readonly isNumber?: boolean
}

/** Records as a table, with a sentence where there are none. */
export function RecordTable<Row>(props: {
  readonly columns: readonly RecordColumn<Row>[]
  readonly rows: readonly Row[] | undefined
  readonly empty: string
  readonly error?: string | undefined
}) {
  const { columns, rows, empty, error } = props
  if (error !== undefined) return <p class="problem">{error}</p>
  if (rows === undefined) return <p class="empty">…</p>
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    <table>
      <thead>
        <tr>
          {columns.map(({ title, isNumber }) => (
            <th key={title} class={isNumber ? 'number' : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={columns.map(({ text }) => text(row)).join(' ')}>
            {columns.map(({ title, text, isNumber }) => (
              <td key={title} class={isNumber ? 'number' : undefined}>
                {text(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
