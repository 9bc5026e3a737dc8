import type uPlot from 'uplot'
import { dateTime, si } from '../format/format.ts'
import { t } from '../text/text.ts'
import type { ChartMark, ChartSeries } from './time-chart.tsx'

interface ReadoutProps {
  readonly chart: uPlot
  /** Pixels from the left edge of the plot. */
  readonly pointer: number
  readonly times: readonly number[]
  readonly series: readonly ChartSeries[]
  readonly marks: readonly ChartMark[]
  readonly unit: string
}

/** A mark is as wide as its arrow. */
const markReach = 6
const shownMarks = 5

/** The figures under the pointer, and what happened there. Who has no pointer finds the same as a table. */
export function Readout({ chart, pointer, times, series, marks, unit }: ReadoutProps) {
  const index = chart.posToIdx(pointer)
  const at = times[index]
  if (at === undefined) return null
  const here = marks.filter((mark) => Math.abs(chart.valToPos(mark.at / 1000, 'x') - pointer) <= markReach)
  const edge = chart.over.offsetLeft
  const isRight = pointer > chart.over.clientWidth / 2
  const x = isRight ? { right: `calc(100% - ${edge + pointer - 12}px)` } : { left: `${edge + pointer + 12}px` }
  return (
    <div class="readout" style={x} aria-hidden="true">
      <b>{dateTime(at)}</b>
      {series.map(({ label, colour, values }) => (
        <span key={label}>
          <i style={{ background: `var(${colour})` }} /> {label}{' '}
          <b>{values[index] == null ? '–' : `${si(values[index])}${unit}`}</b>
        </span>
      ))}
      {here.slice(0, shownMarks).map(({ at: when, text, colour }) => (
        <span key={`${when} ${text}`} class="event">
          <i style={{ background: `var(${colour})` }} /> {text}
        </span>
      ))}
      {here.length > shownMarks && <span>{t('and {n} more', { n: here.length - shownMarks })}</span>}
    </div>
  )
}
