// Before uPlot, which asks for the language while it is loaded.
import '../format/known-language.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { dateTime, si } from '../format/format.ts'
import { route, setQuery } from '../shell/route.ts'
import { colourOf, colourTurn } from '../shell/theme.ts'
import { ScrollFrame } from '../table/scroll-frame.tsx'
import { t } from '../text/text.ts'
import { Readout } from './readout.tsx'

/** One line of a chart. */
export interface ChartSeries {
  readonly label: string
  /** The CSS variable of its colour; `NAME-soft` is its area's. */
  readonly colour: string
  readonly values: readonly (number | null)[]
}

/** A moment worth a line across the chart. */
export interface ChartMark {
  readonly at: number
  readonly text: string
  readonly colour: string
}

/** A horizontal line, such as a threshold; from there up to the next is its band. */
export interface ChartLevel {
  readonly value: number
  readonly text: string
  /** The CSS variable of its band's colour. @default no band */
  readonly colour?: string
}

interface TimeChartProps {
  readonly label: string
  /** One sentence with what the chart shows, for those who do not see it. */
  readonly summary: string
  /** Milliseconds, rising. */
  readonly times: readonly number[]
  /** Areas are stacked: the first lies at the bottom. */
  readonly series: readonly ChartSeries[]
  readonly isStacked?: boolean
  readonly marks?: readonly ChartMark[]
  readonly levels?: readonly ChartLevel[]
  readonly unit?: string
  readonly height?: number
  /** Somebody has drawn over a period. */
  readonly onZoom?: (fromMs: number, toMs: number) => void
}

/** Values over time, with a summary in words and the same figures as a table. */
export function TimeChart(props: TimeChartProps) {
  const { label, summary, times, series, isStacked = false, marks = [], unit = '/s', height = 210 } = props
  // In the address, as the period is: whoever opens it sees the same figures.
  const isTable = route.value.query['chart'] === 'table'
  return (
    <figure class="chart">
      <figcaption>
        <ul class="legend">
          {series.map(({ label: name, colour }) => (
            <li key={name}>
              <i style={{ background: `var(${colour})` }} /> {name}
            </li>
          ))}
          {marks.length > 0 && (
            <li>
              <i class="mark" /> {t('events')}
            </li>
          )}
        </ul>
        <span class="summary">{summary}</span>
        <button
          type="button"
          class="plain"
          aria-pressed={isTable}
          onClick={() => setQuery({ chart: isTable ? '' : 'table' })}
        >
          {isTable ? t('as chart') : t('as table')}
        </button>
      </figcaption>
      {isTable ? (
        <ChartTable label={label} times={times} series={series} unit={unit} />
      ) : (
        <Drawing {...props} isStacked={isStacked} marks={marks} unit={unit} height={height} />
      )}
    </figure>
  )
}

interface DrawingProps extends TimeChartProps {
  readonly isStacked: boolean
  readonly marks: readonly ChartMark[]
  readonly unit: string
  readonly height: number
}

function Drawing(props: DrawingProps) {
  const { times, series, isStacked, height, label, summary, marks, unit } = props
  const place = useRef<HTMLDivElement>(null)
  const [pointer, setPointer] = useState<number>()
  const chart = useRef<uPlot | null>(null)
  const latest = useRef(props)
  latest.current = props
  const shape = `${colourTurn.value} ${series.map(({ label: name, colour }) => `${name}${colour}`).join()}`

  useEffect(() => {
    const element = place.current!
    const options = chartOptions(latest, element.clientWidth, setPointer)
    chart.current = new uPlot(options, dataOf(latest.current), element)
    const resize = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }))
    resize.observe(element)
    return () => {
      resize.disconnect()
      chart.current?.destroy()
    }
  }, [shape, height])

  useEffect(() => {
    chart.current?.setData(dataOf({ times, series, isStacked }))
  }, [times, series, isStacked])

  return (
    <div class="plot">
      <div class="drawing" ref={place} role="img" aria-label={`${label}: ${summary}`} />
      {pointer !== undefined && chart.current !== null && (
        <Readout chart={chart.current} pointer={pointer} times={times} series={series} marks={marks} unit={unit} />
      )}
    </div>
  )
}

/** uPlot fills each series down to zero, so that the largest sum is drawn first. */
function dataOf({ times, series, isStacked }: Pick<DrawingProps, 'times' | 'series' | 'isStacked'>): uPlot.AlignedData {
  const seconds = times.map((time) => time / 1000)
  if (!isStacked) return [seconds, ...series.map(({ values }) => [...values])]
  const sums = new Array<number>(times.length).fill(0)
  const stacked = series.map(({ values }) =>
    values.map((value, index) => {
      sums[index] = sums[index]! + (value ?? 0)
      return value === null ? null : sums[index]!
    }),
  )
  return [seconds, ...stacked.reverse()]
}

function chartOptions(
  latest: { readonly current: DrawingProps },
  width: number,
  onPointer: (left: number | undefined) => void,
): uPlot.Options {
  const { series, isStacked, height, unit, onZoom } = latest.current
  const axis = {
    stroke: colourOf('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { show: false },
  }
  const lines = series.map(({ label, colour }) => ({
    label,
    stroke: colourOf(colour),
    width: 1.5,
    points: { show: false },
    ...(isStacked && { fill: colourOf(`${colour}-soft`) }),
  }))
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: onZoom !== undefined, y: false, setScale: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(10, (max ?? 0) * 1.1, topLevel(latest.current) * 1.1)] } },
    axes: [
      { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => clock(tick * 1000)) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (tick === 0 ? '0' : `${si(tick)}${unit}`)) },
    ],
    series: [{}, ...(isStacked ? lines.reverse() : lines)],
    hooks: {
      drawClear: [(chart) => drawBands(chart, latest.current)],
      draw: [(chart) => drawMarks(chart, latest.current)],
      // uPlot says −10 where the pointer has left.
      setCursor: [({ cursor: { left = -1 } }) => onPointer(left < 0 ? undefined : left)],
      setSelect: [
        (chart) => {
          const { left, width: wide } = chart.select
          if (wide < 6) return
          const from = chart.posToVal(left, 'x') * 1000
          const to = chart.posToVal(left + wide, 'x') * 1000
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          latest.current.onZoom?.(Math.round(from), Math.round(to))
        },
      ],
    },
  }
}

function topLevel({ levels = [], times }: DrawingProps): number {
  return times.length === 0 ? 0 : Math.max(0, ...levels.map(({ value }) => value))
}

function clock(ms: number): string {
  const date = new Date(ms)
  const two = (value: number) => String(value).padStart(2, '0')
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.getSeconds() !== 0) return `${time}:${two(date.getSeconds())}`
  return time === '00:00' ? `${two(date.getMonth() + 1)}-${two(date.getDate())}` : time
}

/** Event marks are dashed lines from top to bottom, levels from side to side with their name. */
function drawMarks(chart: uPlot, { marks, levels = [] }: DrawingProps): void {
  const { ctx, bbox } = chart
  const ratio = devicePixelRatio
  ctx.save()
  ctx.lineWidth = ratio
  ctx.font = `${11 * ratio}px system-ui, sans-serif`
  const drawn = new Set<string>()
  for (const { at, colour } of marks) {
    const x = Math.round(chart.valToPos(at / 1000, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    // Keys that become hot together share a line.
    const place = `${Math.round(x / (2 * ratio))} ${colour}`
    if (drawn.has(place)) continue
    drawn.add(place)
    ctx.strokeStyle = ctx.fillStyle = colourOf(colour)
    ctx.setLineDash([3 * ratio, 3 * ratio])
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    ctx.beginPath()
    ctx.moveTo(x - 4 * ratio, bbox.top)
    ctx.lineTo(x + 4 * ratio, bbox.top)
    ctx.lineTo(x, bbox.top + 6 * ratio)
    ctx.fill()
  }
  ctx.strokeStyle = ctx.fillStyle = colourOf('--muted')
  ctx.textAlign = 'right'
  for (const { value, text } of levels) {
    const y = Math.round(chart.valToPos(value, 'y', true))
    if (y < bbox.top) continue
    ctx.setLineDash([6 * ratio, 4 * ratio])
    ctx.beginPath()
    ctx.moveTo(bbox.left, y)
    ctx.lineTo(bbox.left + bbox.width, y)
    ctx.stroke()
    ctx.fillText(text, bbox.left + bbox.width - 6 * ratio, y - 5 * ratio)
  }
  ctx.restore()
}

/** What is done between one level and the next, as a band behind the lines. */
function drawBands(chart: uPlot, { levels = [] }: DrawingProps): void {
  const { ctx, bbox } = chart
  ctx.save()
  for (const [index, { value, colour }] of levels.entries()) {
    if (colour === undefined) continue
    const bottom = Math.min(bbox.top + bbox.height, chart.valToPos(value, 'y', true))
    const next = levels[index + 1]
    const top = next === undefined ? bbox.top : Math.max(bbox.top, chart.valToPos(next.value, 'y', true))
    ctx.fillStyle = colourOf(colour)
    ctx.globalAlpha = 0.55
    if (bottom > top) ctx.fillRect(bbox.left, top, bbox.width, bottom - top)
  }
  ctx.restore()
}

const tableRows = 120

function ChartTable(props: Pick<TimeChartProps, 'label' | 'times' | 'series'> & { readonly unit: string }) {
  const { label, times, series, unit } = props
  const first = Math.max(0, times.length - tableRows)
  const rows = times.slice(first).map((_, index) => times.length - 1 - index)
  return (
    <ScrollFrame label={label} name="chart-table">
      <table>
        <thead>
          <tr>
            <th>{t('Time')}</th>
            {series.map(({ label: name }) => (
              <th key={name} class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((index) => (
            <tr key={times[index]}>
              <td>{dateTime(times[index]!)}</td>
              {series.map(({ label: name, values }) => (
                <td key={name} class="number">
                  {values[index] == null ? '–' : `${si(values[index])}${unit}`}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollFrame>
  )
}
