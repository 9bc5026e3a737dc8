import { dayMs, ZoneClock } from './zone-clock.ts'

/** Minutes at which something should happen, by the wall clock of a time zone. */
export interface Schedule {
  /**
   * The first moment after `afterMs`, both in milliseconds since 1970; undefined if there is none within five years.
   */
  next(afterMs: number): number | undefined
}

/** A schedule could not be parsed; says what is wrong. */
export class ScheduleError extends Error {}

interface Field {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: ['', ...months] },
  { name: 'day of week', min: 0, max: 7, names: days },
]
const maxDays = 5 * 366

/**
 * A schedule from five fields, as in cron(5): minute, hour, day of month, month, day of week; each `*`, a number, a
 * name, a range, or a list of these, with `/step`. If both days are given, either is enough. Times are in the zone: one
 * that its clock skips happens when the clock continues, and one that it shows twice happens once.
 */
export function parseCron(text: string, timeZone: string): Schedule {
  const given = text.trim().split(/\s+/)
  if (given.length !== 5)
    throw new ScheduleError(`"${text}" has ${given.length} fields; cron has 5, as in "0 10 * * fri"`)
  const [minutes, hours, monthDays, inMonths, weekDays] = given.map((part, index) => parseField(part, fields[index]!))
  const isAnyMonthDay = given[2]!.startsWith('*')
  const isAnyWeekDay = given[4]!.startsWith('*')
  const wallTimes = zoneClock(timeZone)
  const isDay = (date: Date) => {
    if (!inMonths!.has(date.getUTCMonth() + 1)) return false
    const [byMonth, byWeek] = [monthDays!.has(date.getUTCDate()), isWeekDay(weekDays!, date.getUTCDay())]
    if (isAnyMonthDay || isAnyWeekDay) return byMonth && byWeek
    return byMonth || byWeek
  }
  return {
    next(afterMs) {
      // The zone's wall clock as if it were UTC: its days are plain days.
      const today = Math.floor(wallTimes.wallAt(afterMs) / dayMs) * dayMs
      for (let day = -1; day < maxDays; day++) {
        const midnight = today + day * dayMs
        if (!isDay(new Date(midnight))) continue
        const found = [...hours!].flatMap((hour) =>
          [...minutes!].map((minute) => wallTimes.momentOf(midnight + (hour * 60 + minute) * 60_000)),
        )
        const later = found.filter((moment) => moment > afterMs)
        if (later.length > 0) return Math.min(...later)
      }
      return undefined
    },
  }
}

function isWeekDay(weekDays: ReadonlySet<number>, day: number): boolean {
  return weekDays.has(day) || (day === 0 && weekDays.has(7))
}

function parseField(text: string, field: Field): ReadonlySet<number> {
  const { name, min, max } = field
  const values = new Set<number>()
  for (const part of text.toLowerCase().split(',')) {
    const [, from, to, step = '1'] = /^(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:\/(\d+))?$/.exec(part) ?? []
    if (from === undefined) throw new ScheduleError(`${name}: "${part}" is not a number, range or *`)
    const first = from === '*' ? min : numberOf(from, field)
    const isOpen = from === '*' || (to === undefined && part.includes('/'))
    const last = to !== undefined ? numberOf(to, field) : isOpen ? max : first
    if (first < min || last > max || last < first || Number(step) < 1)
      throw new ScheduleError(`${name}: "${part}" is not within ${min} to ${max}`)
    for (let value = first; value <= last; value += Number(step)) values.add(value)
  }
  return values
}

function numberOf(text: string, { name, names }: Field): number {
  if (/^\d+$/.test(text)) return Number(text)
  const index = names?.indexOf(text.slice(0, 3)) ?? -1
  if (index < 0) throw new ScheduleError(`${name}: "${text}" is unknown`)
  return index
}

function zoneClock(timeZone: string): ZoneClock {
  try {
    return new ZoneClock(timeZone)
  } catch {
    throw new ScheduleError(`unknown time zone "${timeZone}"; use a name such as Asia/Shanghai or UTC`)
  }
}
