import { overview } from '../data/live.ts'
import { dateTime, timeOfDay } from '../format/format.ts'
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
  if (drawn !== undefined) {
    return (
      <span class="tools">
        <span class="muted">
          {dateTime(drawn.from)} – {timeOfDay(drawn.to)}
        </span>
        <button type="button" onClick={() => setQuery({ from: '', to: '' })}>
          {t('Back to now')}
        </button>
      </span>
    )
  }
  return (
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
  )
}

/** Draws over a chart: the period goes into the address. */
export function zoomTo(from: number, to: number): void {
  setQuery({ from: String(Math.floor(from)), to: String(Math.ceil(to)) })
}

export function hubNow(): number {
  return overview.value?.hubTime ?? Date.now()
}
