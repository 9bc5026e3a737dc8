import { keyText, type RecurrenceView } from '@firebreak/core'
import type { ZoneClock } from '../schedule/zone-clock.ts'
import { isWeekly, type PatternState, timeOn } from './pattern.ts'
import type { Expected } from './recogniser.ts'
import { clockText, weekdayName } from './weekday.ts'

const maxKeys = 100
const dayNumbers = [1, 2, 3, 4, 5, 6, 0]

/** A pattern as shown to users. */
export function recurrenceView(expected: Expected, days: ZoneClock, warmAt: number): RecurrenceView {
  const { subject, pattern, at, spreadMs, chance, isTrusted, keys } = expected
  const when = whenText(pattern)
  const name = keyText(subject.name)
  const percent = Math.round(chance * 100)
  const sure = isTrusted ? `${percent} % sure` : `${percent} % certain, too little to act on`
  const what = subject.isPrefix ? `keys of ${name}` : name
  const others = subject.isPrefix && keys.length === 0 ? '; its keys differ each time, so none can be warmed' : ''
  return {
    id: `${subject.isPrefix ? 'prefix' : 'key'} ${subject.redisClusterId} ${name} ${when}`,
    redisClusterId: subject.redisClusterId,
    name,
    isPrefix: subject.isPrefix,
    cycle: isWeekly(pattern) ? 'week' : 'day',
    when,
    spreadMs,
    confidence: chance,
    seen: pattern.seen,
    missed: pattern.missed,
    lastAt: days.momentOf(timeOn(pattern, pattern.lastHit)),
    nextAt: at,
    warmAt,
    keys: keys.slice(0, maxKeys).map((key) => keyText(key)),
    isTrusted,
    text: `${what} ${subject.isPrefix ? 'burn' : 'burns'} ${everyText(pattern)}, seen ${pattern.seen} times and missed ${pattern.missed}: ${sure}${others}`,
  }
}

/** Who warms, in a job and in its keys' reasons. */
export function jobReason({ pattern, chance }: Expected, days: ZoneClock): string {
  return `forecast: it recurs ${everyText(pattern)} (${days.timeZone}), ${Math.round(chance * 100)} % sure`
}

/** "10:00", "Friday 20:00", "Monday, Tuesday 10:00" */
function whenText(pattern: PatternState): string {
  const names = weekdaysOf(pattern).map(weekdayName)
  const clock = clockText(pattern.centre)
  return names.length === 7 ? clock : `${names.join(', ')} ${clock}`
}

function everyText(pattern: PatternState): string {
  const weekdays = weekdaysOf(pattern)
  const clock = clockText(pattern.centre)
  if (weekdays.length === 7) return `each day at ${clock}`
  return `each ${weekdays.map(weekdayName).join(', ')} at ${clock}`
}

/** The days of the week on which it comes, Monday first; all if not known yet. */
function weekdaysOf(pattern: PatternState): number[] {
  if (!isWeekly(pattern)) return dayNumbers
  const found = dayNumbers.filter((weekday) => {
    const { hits, chances } = pattern.cells[weekday]!
    return chances > 0 && hits / chances >= 0.4
  })
  return found.length === 0 ? dayNumbers : found
}
