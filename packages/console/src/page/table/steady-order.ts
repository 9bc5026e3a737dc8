/**
 * The order of rows while somebody points at them or has the focus in them: nobody clicks on a row that has just slipped
 * under the pointer. Rows that were there keep their places, rows that are gone leave theirs, new ones come at the end.
 */
export function steadyOrder<Row>(before: readonly string[], rows: readonly Row[], id: (row: Row) => string): Row[] {
  const known = new Map(rows.map((row) => [id(row), row]))
  const kept = before.flatMap((one) => known.get(one) ?? [])
  const keptIds = new Set(before)
  return [...kept, ...rows.filter((row) => !keptIds.has(id(row)))]
}
