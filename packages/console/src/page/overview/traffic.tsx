import {
  allReads,
  type HistoryEvent,
  type HistoryView,
  type Overview,
  readableKey,
  savedReads,
  type TrafficPoint,
} from '@firebreak/core'
import { type ChartMark, TimeChart } from '../chart/time-chart.tsx'
import { useLoaded } from '../data/loaded.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { percent, rate } from '../format/format.ts'
import { t } from '../text/text.ts'
import { periodName, periodOf, RangeChoice, zoomTo } from '../timeline/range.tsx'

/** Reads by who answered, stacked: the top edge is all reads. Two minutes come live, longer periods from the history. */
export function Traffic({ now }: { readonly now: Overview }) {
  const period = periodOf(now.hubTime, '2m')
  const live = Math.floor((now.traffic[0]?.at ?? now.hubTime) / 60_000) * 60_000
  const path =
    period === undefined ? `from=${live}&limit=1&marks=60` : `from=${period.from}&to=${period.to}&limit=1&marks=60`
  const { value: past, error } = useLoaded<HistoryView>(`/v1/history?${path}`, 5000, periodName('2m'))
  const points = period === undefined ? now.traffic : (past?.traffic ?? [])
  return (
    <section aria-label={t('Traffic')}>
      <div class="card-head">
        <h2>{t('Reads per second, by who answered')}</h2>
        <RangeChoice live="2m" />
      </div>
      {error !== undefined && <p class="problem">{error}</p>}
      <TimeChart
        label={t('Reads per second, by who answered')}
        summary={summaryOf(points)}
        times={points.map(({ at }) => at)}
        isStacked
        series={[
          { label: t('Redis'), colour: '--redis', values: points.map(({ redis }) => redis) },
          { label: t('copies'), colour: '--copies', values: points.map(({ copies }) => copies) },
          { label: t('memory'), colour: '--local', values: points.map(({ local }) => local) },
          { label: t('limited'), colour: '--limited', values: points.map(({ limited }) => limited) },
        ]}
        marks={marksOf(past?.events ?? [])}
        onZoom={zoomTo}
      />
    </section>
  )
}

const markColours: Partial<Record<HistoryEvent['kind'], string>> = {
  hot: '--hot',
  cooled: '--cool',
  alarm: '--bad',
  rollback: '--bad',
}

/** Heat, cooling and alarms; what merely continues gets no mark. */
export function marksOf(events: readonly HistoryEvent[]): ChartMark[] {
  return events.flatMap(({ at, kind, key }) => {
    const colour = markColours[kind]
    return colour === undefined ? [] : [{ at, colour, text: `${t(kind)} ${cutMiddle(readableKey(key))}` }]
  })
}

export function summaryOf(points: readonly TrafficPoint[]): string {
  const last = points.at(-1)
  if (last === undefined) return t('no reads yet')
  const sum = (of: (point: TrafficPoint) => number) => points.reduce((total, point) => total + of(point), 0)
  const all = sum(allReads)
  return t('now {now}, peak {peak}, {share} never reached Redis', {
    now: rate(allReads(last)),
    peak: rate(Math.max(...points.map(allReads))),
    share: percent(all === 0 ? 0 : sum(savedReads) / all),
  })
}
