import { bytes, count, percent } from '../format/format.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'

/** A prefix with all keys below it. */
export interface Prefix {
  readonly prefix: string
  readonly keys: number
  readonly bytes: number
  readonly children: readonly Prefix[]
}

interface Tile {
  readonly of: Prefix
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const width = 1000
const height = 220
const maxTiles = 40

/** Where the bytes are: the area of a prefix is its share. */
export function Treemap({ root }: { readonly root: Prefix }) {
  const parts = [...root.children].sort((a, b) => b.bytes - a.bytes).slice(0, maxTiles)
  if (parts.length === 0) return null
  const total = parts.reduce((sum, part) => sum + part.bytes, 0)
  const text = (part: Prefix) =>
    `${part.prefix || t('(no prefix)')}: ${bytes(part.bytes)}, ${percent(part.bytes / Math.max(1, root.bytes))}, ${t('{n} keys', { n: count(part.keys) })}`
  return (
    <>
      <svg
        class="treemap"
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={t('Bytes by prefix; the largest: {text}', { text: text(parts[0]!) })}
      >
        {squarify(parts, total).map(({ of: part, ...box }, index) => (
          <g key={part.prefix}>
            <title>{text(part)}</title>
            <rect class={`tile-${Math.min(5, index)}`} {...box} />
            {box.width > 90 && box.height > 22 && (
              <text x={box.x + 6} y={box.y + 16}>
                {part.prefix || t('(no prefix)')} {bytes(part.bytes)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <details class="as-table">
        <summary>{t('as table')}</summary>
        <RecordTable
          label={t('Bytes by prefix')}
          rows={parts}
          id={({ prefix }) => prefix}
          empty=""
          columns={[
            { title: t('Prefix'), cell: ({ prefix }) => <code>{prefix || t('(no prefix)')}</code> },
            { title: t('Keys'), cell: ({ keys }) => count(keys), isNumber: true },
            { title: t('Size'), cell: (part) => bytes(part.bytes), isNumber: true },
            { title: t('Share'), cell: (part) => percent(part.bytes / Math.max(1, root.bytes)), isNumber: true },
          ]}
        />
      </details>
    </>
  )
}

/** Slices along the longer side, each as near to a square as the next part allows (Bruls 2000). */
export function squarify(parts: readonly Prefix[], total: number): Tile[] {
  const tiles: Tile[] = []
  let [x, y, wide, high] = [0, 0, width, height]
  let rest = Math.max(1, total)
  for (let at = 0; at < parts.length; ) {
    const isWide = wide >= high
    const side = isWide ? high : wide
    const scale = (wide * high) / rest
    let taken = 1
    let sum = parts[at]!.bytes
    while (at + taken < parts.length) {
      const next = sum + parts[at + taken]!.bytes
      const row = parts.slice(at, at + taken)
      if (worst(row, sum * scale, side, scale) < worst([...row, parts[at + taken]!], next * scale, side, scale)) break
      sum = next
      taken++
    }
    const thick = side === 0 ? 0 : (sum * scale) / side
    let along = 0
    for (const part of parts.slice(at, at + taken)) {
      const length = sum === 0 ? 0 : (part.bytes / sum) * side
      tiles.push(
        isWide
          ? { of: part, x, y: y + along, width: thick, height: length }
          : { of: part, x: x + along, y, width: length, height: thick },
      )
      along += length
    }
    if (isWide) [x, wide] = [x + thick, wide - thick]
    else [y, high] = [y + thick, high - thick]
    rest = Math.max(1e-9, rest - sum)
    at += taken
  }
  return tiles
}

function worst(row: readonly Prefix[], area: number, side: number, scale: number): number {
  const areas = row.map((part) => Math.max(1e-9, part.bytes * scale))
  return Math.max(
    (side * side * Math.max(...areas)) / (area * area),
    (area * area) / (side * side * Math.min(...areas)),
  )
}
