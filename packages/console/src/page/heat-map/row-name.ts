import { type HeatMapView, readableKey } from '@firebreak/core'
import { t } from '../text/text.ts'

type RowId = Pick<HeatMapView['rows'][number], 'name' | 'redisClusterId'>

/** A row in words, with its cluster where there are several. */
export function rowName({ by, rows }: HeatMapView, { name, redisClusterId }: RowId): string {
  const cluster = rows.some((row) => row.redisClusterId !== rows[0]!.redisClusterId) ? ` · ${redisClusterId}` : ''
  if (by === 'slot') return `${t('slot {n}', { n: name })}${cluster}`
  return `${by === 'node' ? name || t('(one node)') : shownName(name)}${cluster}`
}

/** A blank name is shown as what it is. */
function shownName(text: string): string {
  const name = readableKey(text)
  return name.trim() === '' ? `“${name}”` : name
}
