const width = 120
const height = 24

/** A small line of recent values; the scale starts at zero, so that equal lines mean equal rates. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  if (values.length < 2) return <svg class="spark" width={width} height={height} aria-hidden="true" />
  const top = Math.max(...values, 1)
  const points = values
    .map(
      (value, index) =>
        `${((index / (values.length - 1)) * width).toFixed(1)},${(height - 1 - (value / top) * (height - 2)).toFixed(1)}`,
    )
    .join(' ')
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`peak ${Math.round(top)} a second`}
    >
      <polyline points={points} />
    </svg>
  )
}
