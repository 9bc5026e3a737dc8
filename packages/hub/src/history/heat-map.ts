import type { HeatMapView, HistorySubject } from '@firebreak/core'
import type { HeatHistory } from './heat-history.ts'
import type { Period, RowFilter } from './past.ts'
import { queryHistory } from './query-history.ts'

/** Time by slot, node, prefix, service or key: the busiest rows of the period. */
export async function heatMap(
  history: Pick<HeatHistory, 'blocks' | 'recordedFrom'>,
  by: HistorySubject,
  period: Period,
  filter: RowFilter,
  maxRows: number,
): Promise<HeatMapView> {
  const [{ rows: found }, from] = await Promise.all([
    queryHistory(history, { by, period, filter, sort: 'accesses', limit: maxRows, page: 1 }),
    history.recordedFrom(),
  ])
  const rows =
    by === 'slot' ? found.toSorted((a, b) => a.slot! - b.slot!) : by === 'node' ? found.toSorted(byName) : found
  return {
    by,
    from: period.from,
    to: period.to,
    resolutionMs: period.resolutionMs,
    columns: period.points,
    rows: rows.map(({ name, redisClusterId, accesses }) => ({ name, redisClusterId, accesses })),
    cells: rows.map(({ series }) => series),
    recordedFrom: from.get(period.stepMs) ?? null,
    max: rows.reduce((max, { series }) => Math.max(max, ...series), 0),
  }
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1
}
