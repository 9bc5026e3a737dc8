import type { HistoryRow, HistoryView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { percent, rate } from '../format/format.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

/** What the servers count themselves (`GET /v1/engines`). */
interface Engine {
  readonly redisClusterId: string
  readonly nodes: readonly {
    readonly node: string
    readonly operationsPerSecond: number
    readonly unreportedShare: number
  }[]
}

type NodeRows = Pick<HistoryView, 'rows'>

/** How evenly the accesses fall on the nodes: one that takes far more than its part has the hot keys. */
export function NodeSkew() {
  const { value, error } = useLoaded<NodeRows>('/v1/history?by=node&limit=200', 5000)
  const engines = useLoaded<{ engines: Engine[] }>('/v1/engines', 5000)
  const rows = value?.rows.map(withRate).filter(({ perSecond }) => perSecond > 0)
  const totals = new Map<string, { sum: number; nodes: number }>()
  for (const { redisClusterId, perSecond } of rows ?? []) {
    const total = totals.get(redisClusterId) ?? { sum: 0, nodes: 0 }
    totals.set(redisClusterId, { sum: total.sum + perSecond, nodes: total.nodes + 1 })
  }
  const ownOf = (row: HistoryRow) => {
    const nodes = engines.value?.engines.find((one) => one.redisClusterId === row.redisClusterId)?.nodes ?? []
    return nodes.find(({ node }) => node === row.name) ?? (nodes.length === 1 ? nodes[0] : undefined)
  }
  return (
    <section aria-label={t('Load by node')}>
      <div class="card-head">
        <h2>{t('Load by node')}</h2>
        <a href="#/heat?by=node">{t('heat map')}</a>
      </div>
      <RecordTable
        label={t('Load by node')}
        rows={rows}
        error={error}
        id={({ redisClusterId, name }) => `${redisClusterId} ${name}`}
        empty={t('No accesses seen yet.')}
        columns={[
          {
            title: t('Node'),
            cell: (row) => (
              <>
                <code>{row.name || t('(one node)')}</code>
                <small>{row.redisClusterId}</small>
              </>
            ),
          },
          { title: t('Asked for'), cell: ({ perSecond }) => rate(perSecond), isNumber: true },
          {
            title: t('Of its cluster'),
            cell: ({ redisClusterId, perSecond }) => {
              const { sum, nodes } = totals.get(redisClusterId)!
              const times = (perSecond / sum) * nodes
              return (
                <>
                  {percent(perSecond / sum)}
                  {nodes > 1 && (
                    <>
                      <progress max={sum} value={perSecond} aria-label={percent(perSecond / sum)} />
                      {times >= 1.5 && <small class="problem">{t('{n} × its share', { n: times.toFixed(1) })}</small>}
                    </>
                  )}
                </>
              )
            },
            isNumber: true,
          },
          {
            title: t('It serves'),
            cell: (row) => {
              const own = ownOf(row)
              return own === undefined ? '–' : rate(own.operationsPerSecond)
            },
            isNumber: true,
            isMinor: true,
          },
          {
            title: t('From others'),
            cell: (row) => {
              const own = ownOf(row)
              return own === undefined ? '–' : percent(own.unreportedShare)
            },
            isNumber: true,
            isMinor: true,
          },
        ]}
      />
    </section>
  )
}

/** The last whole points of the hour: what the node was asked for now, memory included. */
function withRate(row: HistoryRow): HistoryRow & { readonly perSecond: number } {
  const last = row.series.slice(-4, -1)
  return { ...row, perSecond: last.reduce((sum, rate) => sum + rate, 0) / Math.max(1, last.length) }
}
