import type { HeatMapView, HistorySubject } from '@firebreak/core'
import { useEffect, useState } from 'preact/hooks'
import { heatColour } from '../chart/heat-ramp.ts'
import { useLoaded } from '../data/loaded.ts'
import { cutMiddle } from '../format/cut-middle.ts'
import { count, dateTime, rate, timeOfDay } from '../format/format.ts'
import { keyAddress, open, route, setQuery } from '../shell/route.ts'
import { colourTurn, isDarkNow } from '../shell/theme.ts'
import { RecordTable } from '../table/record-table.tsx'
import { t } from '../text/text.ts'
import { endingNow, hubNow, periodName, periodOf, RangeChoice, zoomTo } from '../timeline/range.tsx'
import { CellKeys, cellText } from './cell-keys.tsx'
import { HeatCanvas, type HeatCell } from './heat-canvas.tsx'
import { rowName } from './row-name.ts'

const subjects = ['slot', 'node', 'prefix', 'key'] as const satisfies readonly HistorySubject[]
const playMs = 250

/** When and where did heat move? */
export function HeatMapPage() {
  const { table } = route.value.query
  const by = subjects.find((subject) => subject === route.value.query['by']) ?? 'prefix'
  const period = periodOf(hubNow(), '15m') ?? endingNow(hubNow(), '15m')
  const path = `/v1/history/heatmap?by=${by}&from=${period.from}&to=${period.to}&rows=48&columns=240`
  const { value: map, error } = useLoaded<HeatMapView>(path, 5000, `${by} ${periodName('15m')}`)
  return (
    <>
      <section aria-label={t('Heat map')}>
        <div class="card-head">
          <h1>{t('Heat map')}</h1>
          <span class="tools">
            <fieldset class="choices" aria-label={t('Rows')}>
              {subjects.map((subject) => (
                <button
                  key={subject}
                  type="button"
                  aria-pressed={by === subject}
                  onClick={() => setQuery({ by: subject, cell: '' })}
                >
                  {t(subject)}
                </button>
              ))}
            </fieldset>
            <RangeChoice live="15m" />
          </span>
        </div>
        {error !== undefined && <p class="problem">{error}</p>}
        {map !== undefined && map.rows.length === 0 && (
          <p class="empty">{t('Nothing was recorded in this period: choose a longer one, or let a service report.')}</p>
        )}
        {map !== undefined && map.rows.length > 0 && (table === '1' ? <AsTable map={map} /> : <DrawnMap map={map} />)}
      </section>
      {map !== undefined && <CellKeys map={map} />}
    </>
  )
}

function DrawnMap({ map }: { readonly map: HeatMapView }) {
  const [hovered, setHovered] = useState<HeatCell>()
  const [playhead, setPlayhead] = useState<number>()
  const [isPlaying, setPlaying] = useState(false)
  useEffect(() => {
    if (!isPlaying) return
    const timer = setInterval(() => setPlayhead((before) => ((before ?? -1) + 1) % map.columns), playMs)
    return () => clearInterval(timer)
  }, [isPlaying, map.columns])
  const timeOf = (column: number) => map.from + column * map.resolutionMs
  const pick = ({ row, column }: HeatCell) => {
    const { name, redisClusterId } = map.rows[row]!
    if (map.by === 'key')
      open(`${keyAddress(redisClusterId, name)}?from=${timeOf(column) - 300_000}&to=${timeOf(column) + 300_000}`)
    else setQuery({ cell: cellOf(map, row, column) })
  }
  return (
    <>
      <p class="summary">{summaryOf(map)}</p>
      <div class="heat">
        <ol class="heat-rows" aria-hidden="true">
          {map.rows.map((row) => (
            <li key={`${row.redisClusterId} ${row.name}`} title={rowName(map, row)}>
              {cutMiddle(rowName(map, row), 24)}
            </li>
          ))}
        </ol>
        <div class="heat-field">
          <HeatCanvas
            map={map}
            label={summaryOf(map)}
            playhead={playhead}
            onHover={setHovered}
            onCell={pick}
            onBrush={(from, to) => zoomTo(timeOf(from), timeOf(to + 1))}
          />
          <Unrecorded map={map} />
        </div>
        <div class="heat-times">
          <span>{dateTime(map.from)}</span>
          <span class="hovered">
            {hovered === undefined ? t('Draw to zoom, click for the keys') : hoveredText(map, hovered)}
          </span>
          <span>{timeOfDay(map.to)}</span>
        </div>
      </div>
      <div class="fields play">
        <button type="button" aria-pressed={isPlaying} onClick={() => setPlaying(!isPlaying)}>
          {isPlaying ? t('Stop') : t('Play back')}
        </button>
        <label class="slider">
          <span>{playhead === undefined ? t('Now') : dateTime(timeOf(playhead))}</span>
          <input
            type="range"
            min="0"
            max={map.columns - 1}
            value={playhead ?? map.columns - 1}
            onInput={(event) => setPlayhead(Number(event.currentTarget.value))}
          />
        </label>
        <span class="muted">{playhead !== undefined && hottestText(map, playhead)}</span>
        <Legend max={map.max} />
        <button type="button" class="plain" onClick={() => setQuery({ table: '1' })}>
          {t('as table')}
        </button>
      </div>
    </>
  )
}

/** What was not recorded is not cold. */
function Unrecorded({ map: { from, to, recordedFrom } }: { readonly map: HeatMapView }) {
  if (recordedFrom == null || recordedFrom <= from) return null
  const part = Math.min(1, (recordedFrom - from) / (to - from))
  return (
    <div class="unrecorded" style={{ width: `${part * 100}%` }}>
      {part > 0.15 && <span>{t('not recorded')}</span>}
    </div>
  )
}

function Legend({ max }: { readonly max: number }) {
  // Another theme is another ramp.
  void colourTurn.value
  const isDark = isDarkNow()
  return (
    <span class="ramp" aria-hidden="true">
      {t('log scale')} 0
      {[0, 0.2, 0.4, 0.6, 0.8, 1].map((part) => (
        <i key={part} style={{ background: `rgb(${heatColour(part, isDark).join()})` }} />
      ))}
      {rate(max)}
    </span>
  )
}

function AsTable({ map }: { readonly map: HeatMapView }) {
  return (
    <>
      <button type="button" class="plain" onClick={() => setQuery({ table: '' })}>
        {t('as chart')}
      </button>
      <RecordTable
        label={t('Heat map')}
        rows={map.rows.map((row, index) => ({ ...row, index, cells: map.cells[index] ?? [] }))}
        id={({ redisClusterId, name }) => `${redisClusterId} ${name}`}
        empty=""
        columns={[
          { title: t(map.by), cell: (row) => <span title={rowName(map, row)}>{cutMiddle(rowName(map, row))}</span> },
          { title: t('Accesses'), cell: ({ accesses }) => count(accesses), isNumber: true },
          { title: t('Peak'), cell: ({ cells }) => rate(Math.max(0, ...cells)), isNumber: true },
          {
            title: t('Peak at'),
            cell: ({ cells }) => timeOfDay(map.from + cells.indexOf(Math.max(0, ...cells)) * map.resolutionMs),
          },
          {
            title: '',
            cell: ({ cells, index }) => (
              <button
                type="button"
                class="quiet"
                onClick={() => setQuery({ cell: cellOf(map, index, cells.indexOf(Math.max(0, ...cells))) })}
              >
                {t('Keys at its peak')}
              </button>
            ),
            isTight: true,
          },
        ]}
      />
    </>
  )
}

function cellOf(map: HeatMapView, row: number, column: number): string {
  const { redisClusterId, name } = map.rows[row]!
  const from = map.from + column * map.resolutionMs
  return cellText({ from, to: from + map.resolutionMs, redisClusterId, name })
}

function hoveredText(map: HeatMapView, { row, column }: HeatCell): string {
  const value = map.cells[row]?.[column] ?? 0
  return `${rowName(map, map.rows[row]!)} · ${timeOfDay(map.from + column * map.resolutionMs)} · ${rate(value)}`
}

function hottestText(map: HeatMapView, column: number): string {
  const values = map.cells.map((cells) => cells[column] ?? 0)
  const row = values.indexOf(Math.max(...values))
  return t('hottest: {name} with {rate}', { name: rowName(map, map.rows[row]!), rate: rate(values[row]!) })
}

function summaryOf(map: HeatMapView): string {
  const peaks = map.cells.map((cells) => Math.max(0, ...cells))
  const row = peaks.indexOf(Math.max(...peaks))
  const column = map.cells[row]?.indexOf(peaks[row]!) ?? 0
  return t('{n} rows; the hottest is {name} with {rate} at {time}', {
    n: map.rows.length,
    name: rowName(map, map.rows[row]!),
    rate: rate(peaks[row] ?? 0),
    time: timeOfDay(map.from + column * map.resolutionMs),
  })
}
