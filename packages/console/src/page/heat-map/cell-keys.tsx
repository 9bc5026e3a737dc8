import type { HeatMapView, HistoryView } from '@firebreak/core'
import { useLoaded } from '../data/loaded.ts'
import { count, duration, rate, timeOfDay } from '../format/format.ts'
import { KeyLink } from '../keys/key-link.tsx'
import { route, setQuery } from '../shell/route.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { rowName } from './row-name.ts'

/** A row of the map during one of its points. */
export interface Cell {
  readonly from: number
  readonly to: number
  readonly redisClusterId: string
  readonly name: string
}

/** As the address carries it: the map moves on and its rows change places, a chosen cell stays what it was. */
export function cellText({ from, to, redisClusterId, name }: Cell): string {
  return [from, to, encodeURIComponent(redisClusterId), encodeURIComponent(name)].join('/')
}

export function parseCell(text: string): Cell | undefined {
  const [from, to, redisClusterId, name] = text.split('/')
  if (!(Number(from) >= 0) || !(Number(to) > Number(from)) || redisClusterId === undefined || name === undefined)
    return undefined
  try {
    return {
      from: Number(from),
      to: Number(to),
      redisClusterId: decodeURIComponent(redisClusterId),
      name: decodeURIComponent(name),
    }
  } catch {
    return undefined
  }
}

/** The keys of the cell that somebody clicked on. */
export function CellKeys({ map }: { readonly map: HeatMapView }) {
  const cell = parseCell(route.value.query['cell'] ?? '')
  const search = new URLSearchParams({ by: 'key', limit: '20' })
  if (cell !== undefined) {
    search.set('from', String(cell.from))
    search.set('to', String(cell.to))
    search.set(map.by, cell.name)
    if (cell.redisClusterId !== '') search.set('cluster', cell.redisClusterId)
  }
  const { value, error } = useLoaded<HistoryView>(cell === undefined ? '' : `/v1/history?${search}`, 60_000)
  if (cell === undefined) return null
  return (
    <section aria-label={t('Keys of the cell')}>
      <div class="card-head">
        <h2>
          {t('{name}, {from} – {to}', {
            name: rowName(map, cell),
            from: timeOfDay(cell.from),
            to: timeOfDay(cell.to),
          })}
        </h2>
        <button type="button" class="plain" aria-label={t('Close')} onClick={() => setQuery({ cell: '' })}>
          ✕
        </button>
      </div>
      <RecordTable
        label={t('Keys of the cell')}
        rows={value?.rows}
        error={error}
        id={({ redisClusterId, name }) => `${redisClusterId} ${name}`}
        empty={t('None of the recorded keys.')}
        columns={[
          {
            title: t('Key'),
            cell: ({ redisClusterId, name }) => <KeyLink redisClusterId={redisClusterId} text={name} />,
          },
          { title: t('Accesses'), cell: ({ accesses }) => count(accesses), isNumber: true },
          { title: t('Peak'), cell: ({ peakPerSecond }) => rate(peakPerSecond), isNumber: true },
          { title: t('Hot for'), cell: ({ hotMs }) => duration(hotMs), isNumber: true },
          { title: t('Kept from Redis'), cell: ({ saved }) => count(saved), isNumber: true },
        ]}
      />
    </section>
  )
}
