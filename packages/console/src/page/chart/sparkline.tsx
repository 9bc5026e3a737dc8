import { rate } from '../format/format.ts'
import { t } from '../text/text.ts'

const width = 112
const height = 24

/** A small line of recent values; the scale starts at zero, so that equal lines mean equal rates. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  if (values.length < 2) return <svg class="spark" width={width} height={height} aria-hidden="true" />
  let top = 1
  for (const value of values) if (value > top) top = value
  const step = width / (values.length - 1)
  let points = ''
  for (let index = 0; index < values.length; index++) {
    points += `${(index * step).toFixed(1)},${(height - 1 - (values[index]! / top) * (height - 3)).toFixed(1)} `
  }
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={t('peak {rate}', { rate: rate(top) })}
    >
      <polygon points={`0,${height} ${points}${width},${height}`} />
      <polyline points={points} />
    </svg>
  )
}
