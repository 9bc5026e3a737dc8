import type { HeatMapView } from '@firebreak/core'
import { useEffect, useRef, useState } from 'preact/hooks'
import { heatColour, heatPart } from '../chart/heat-ramp.ts'
import { colourOf, colourTurn, isDarkNow } from '../shell/theme.ts'

/** One cell of the map. */
export interface HeatCell {
  readonly row: number
  readonly column: number
}

interface HeatCanvasProps {
  readonly map: HeatMapView
  readonly label: string
  /** The column of the play-back, or none. */
  readonly playhead: number | undefined
  readonly onCell: (cell: HeatCell) => void
  /** Columns from and to, drawn with the pointer. */
  readonly onBrush: (from: number, to: number) => void
  readonly onHover: (cell: HeatCell | undefined) => void
}

/** Few rows use the room that many need. */
const rowHeight = 12
const tallestRow = 26
const fullHeight = 560
const shortestBrush = 2

/** Time from left to right, one row a slot, node, prefix or key. One pixel of an image is one cell. */
export function HeatCanvas({ map, label, playhead, onCell, onBrush, onHover }: HeatCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [brush, setBrush] = useState<{ readonly from: number; readonly to: number }>()
  const rows = map.rows.length
  const height = Math.max(120, Math.min(fullHeight, rows * Math.max(rowHeight, Math.min(tallestRow, 420 / rows))))
  const turn = colourTurn.value

  useEffect(() => {
    const element = canvas.current!
    const draw = () => {
      element.width = Math.round(element.clientWidth * devicePixelRatio)
      element.height = Math.round(height * devicePixelRatio)
      const context = element.getContext('2d')!
      const image = imageOf(map, isDarkNow())
      if (image === undefined) return
      context.imageSmoothingEnabled = false
      context.drawImage(image, 0, 0, element.width, element.height)
      const width = element.width / Math.max(1, map.columns)
      if (playhead !== undefined) {
        context.strokeStyle = colourOf('--ink')
        context.lineWidth = 2 * devicePixelRatio
        context.strokeRect(playhead * width, 0, Math.max(width, 2), element.height)
      }
      if (brush !== undefined) {
        context.fillStyle = colourOf('--brush')
        context.fillRect(brush.from * width, 0, (brush.to - brush.from + 1) * width, element.height)
      }
    }
    draw()
    const resize = new ResizeObserver(draw)
    resize.observe(element)
    return () => resize.disconnect()
  }, [map, playhead, brush, height, turn])

  const cellOf = (event: PointerEvent): HeatCell => {
    const box = canvas.current!.getBoundingClientRect()
    const within = (part: number, count: number) => Math.min(count - 1, Math.max(0, Math.floor(part * count)))
    return {
      column: within((event.clientX - box.left) / box.width, map.columns),
      row: within((event.clientY - box.top) / box.height, map.rows.length),
    }
  }
  const start = useRef<HeatCell>()
  return (
    <canvas
      ref={canvas}
      class="heat-canvas"
      style={{ height: `${height}px` }}
      role="img"
      aria-label={label}
      onPointerDown={(event) => {
        start.current = cellOf(event)
        canvas.current!.setPointerCapture(event.pointerId)
      }}
      onPointerMove={(event) => {
        const cell = cellOf(event)
        onHover(cell)
        if (start.current !== undefined) setBrush(ordered(start.current.column, cell.column))
      }}
      onPointerCancel={() => {
        // A finger that scrolls the page is no brush.
        start.current = undefined
        setBrush(undefined)
      }}
      onPointerLeave={() => onHover(undefined)}
      onPointerUp={(event) => {
        const cell = cellOf(event)
        const drawn = start.current && ordered(start.current.column, cell.column)
        start.current = undefined
        setBrush(undefined)
        if (drawn === undefined) return
        if (drawn.to - drawn.from < shortestBrush) onCell(cell)
        else onBrush(drawn.from, drawn.to)
      }}
    />
  )
}

function ordered(a: number, b: number): { readonly from: number; readonly to: number } {
  return { from: Math.min(a, b), to: Math.max(a, b) }
}

function imageOf({ cells, columns, max }: HeatMapView, isDark: boolean): HTMLCanvasElement | undefined {
  if (columns === 0 || cells.length === 0) return undefined
  const image = document.createElement('canvas')
  image.width = columns
  image.height = cells.length
  const context = image.getContext('2d')!
  const pixels = context.createImageData(columns, cells.length)
  for (const [row, values] of cells.entries()) {
    for (let column = 0; column < columns; column++) {
      const [red, green, blue] = heatColour(heatPart(values[column] ?? 0, max), isDark)
      const at = (row * columns + column) * 4
      pixels.data[at] = red
      pixels.data[at + 1] = green
      pixels.data[at + 2] = blue
      pixels.data[at + 3] = 255
    }
  }
  context.putImageData(pixels, 0, 0)
  return image
}
