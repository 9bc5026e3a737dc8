import { useState } from 'preact/hooks'
import { overview } from '../data/live.ts'
import { dateTime } from '../format/format.ts'
import { route, setQuery } from '../shell/route.ts'
import { t } from '../text/text.ts'

/** Periods that end now, by their name in the address. */
export const ranges = {
  '1m': 60_000,
  '2m': 120_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '6h': 21_600_000,
  '1d': 86_400_000,
  '7d': 604_800_000,
} as const
export type RangeName = keyof typeof ranges

const titles: Readonly<Record<RangeName, string>> = {
  '1m': '1 min',
  '2m': '2 min',
  '15m': '15 min',
  '1h': '1 h',
  '6h': '6 h',
  '1d': '1 day',
  '7d': '7 days',
}

/** The last moment that a `Date` has. */
const lastTime = 8.64e15

export interface ShownPeriod {
  readonly from: number
  readonly to: number
}

/**
 * The period that the address names: `range=6h` ends now, `from=…&to=…` stands still. Undefined where it is the live one.
 * The end of a moving period steps by a hundredth of it, so that not every second is another question.
 */
export function periodOf(nowMs: number, live: RangeName): ShownPeriod | undefined {
  const drawn = drawnPeriod()
  if (drawn !== undefined) return drawn
  const range = rangeName(live)
  return range === live ? undefined : endingNow(nowMs, range)
}

/** The period of `from=…&to=…`; addresses are written by hand, too, and by programs: two times, the later one last. */
function drawnPeriod(): ShownPeriod | undefined {
  const { from, to } = route.value.query
  const [first, last] = [Number(from || Number.NaN), Number(to || Number.NaN)]
  return first >= 0 && last > first && last <= lastTime ? { from: first, to: last } : undefined
}

function rangeName(live: RangeName): RangeName {
  const { range = live } = route.value.query
  return Object.hasOwn(ranges, range) ? (range as RangeName) : live
}

/** The period as the address names it: the same while it moves on. */
export function periodName(live: RangeName): string {
  const drawn = drawnPeriod()
  return drawn === undefined ? rangeName(live) : `${drawn.from} ${drawn.to}`
}

export function endingNow(nowMs: number, range: RangeName): ShownPeriod {
  const length = ranges[range]
  const step = Math.max(1000, length / 100)
  const to = Math.ceil(nowMs / step) * step
  return { from: to - length, to }
}

interface RangeChoiceProps {
  /** The first choice, which needs no history. */
  readonly live: RangeName
}

/** Chooses the period; one that was drawn on a chart can be left again. */
export function RangeChoice({ live }: RangeChoiceProps) {
  const range = rangeName(live)
  const drawn = drawnPeriod()
  const names = (Object.keys(ranges) as RangeName[]).filter((name) => ranges[name] >= ranges[live])
  return (
    <span class="tools">
      {drawn === undefined ? (
        <fieldset class="choices" aria-label={t('Period')}>
          {names.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={range === name}
              onClick={() => setQuery({ range: name === live ? '' : name })}
            >
              {t(titles[name])}
            </button>
          ))}
        </fieldset>
      ) : (
        <button type="button" onClick={() => setQuery({ from: '', to: '' })}>
          {t('Back to now')}
        </button>
      )}
      <PeriodFields drawn={drawn} length={ranges[range]} />
    </span>
  )
}

/** Any period, such as last night's: two moments of this browser's time. */
function PeriodFields({ drawn, length }: { readonly drawn: ShownPeriod | undefined; readonly length: number }) {
  const [isOpen, setOpen] = useState(false)
  const shown = drawn ?? { from: hubNow() - length, to: hubNow() }
  if (drawn === undefined && !isOpen) {
    return (
      <button type="button" onClick={() => setOpen(true)}>
        {t('From … to …')}
      </button>
    )
  }
  const change = (part: Partial<ShownPeriod>) => {
    const { from, to } = { ...shown, ...part }
    if (Number.isFinite(from) && from < to) zoomTo(from, to)
  }
  const field = (name: 'from' | 'to', label: string) => (
    <label class="inline moment">
      {label}
      <input
        type="datetime-local"
        step="1"
        name={name}
        value={localMoment(shown[name])}
        onChange={(event) => change({ [name]: Date.parse(event.currentTarget.value) })}
      />
    </label>
  )
  return (
    <>
      {field('from', t('from'))}
      {field('to', t('to'))}
    </>
  )
}

/** A moment as such a field writes it, in local time. */
function localMoment(ms: number): string {
  return dateTime(Math.floor(ms)).replace(' ', 'T')
}

/** The period of this page for the address of another one. */
export function periodQuery(): string {
  const { from, to, range } = route.value.query
  const kept = drawnPeriod() === undefined ? { range } : { from, to }
  const search = new URLSearchParams(Object.entries(kept).flatMap(([name, value]) => (value ? [[name, value]] : [])))
  return search.size === 0 ? '' : `?${search}`
}

/** Draws over a chart: the period goes into the address, and Back leaves it again. */
export function zoomTo(from: number, to: number): void {
  setQuery({ from: String(Math.floor(from)), to: String(Math.ceil(to)), page: '', events: '' }, true)
}

export function hubNow(): number {
  return overview.value?.hubTime ?? Date.now()
}
