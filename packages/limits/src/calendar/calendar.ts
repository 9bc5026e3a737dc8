import type { CalendarUnit } from '../spec/spec.ts'

/** A stretch of time, from `start` up to but not including `end`. */
export interface TimeWindow {
  readonly start: number
  readonly end: number
}

/**
 * The hours, days, weeks and months of a time zone.
 *
 * A window is found by its label: the local date for a day, the local Monday for a week, the month, or hour and offset
 * for an hour. From the asked instant we walk until the label changes and then bisect to the millisecond. That needs no
 * rule about daylight saving: a day of 23 or 25 hours, a midnight that does not exist and a half-hour zone come out as
 * people there count them. (An hour that occurs twice is two windows, because its offset differs.)
 */
export class Calendar {
  readonly #unit: CalendarUnit
  readonly #format: Intl.DateTimeFormat
  /** The most recently used windows, newest first: finding one takes about sixty calendar look-ups. */
  readonly #recent: TimeWindow[] = []

  constructor(unit: CalendarUnit, timeZone: string) {
    this.#unit = unit
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      timeZoneName: 'longOffset',
    })
  }

  /** The window that contains an instant. */
  windowOf(nowMs: number): TimeWindow {
    for (const window of this.#recent) if (nowMs >= window.start && nowMs < window.end) return window
    const end = this.#edge(nowMs, 1)
    // The last instant before the window, plus one.
    const start = this.#edge(nowMs, -1) + 1
    const window = { start, end }
    this.#recent.unshift(window)
    if (this.#recent.length > keptWindows) this.#recent.pop()
    return window
  }

  /** The first instant with another label, going forward or backward. */
  #edge(from: number, direction: 1 | -1): number {
    const label = this.#label(from)
    const step = direction * stepMs[this.#unit]
    let inside = from
    let outside = from + step
    while (this.#label(outside) === label) {
      inside = outside
      outside += step
    }
    while (Math.abs(outside - inside) > 1) {
      const middle = Math.floor((inside + outside) / 2)
      if (this.#label(middle) === label) inside = middle
      else outside = middle
    }
    return outside
  }

  #label(at: number): string {
    let year = 0
    let month = 0
    let day = 0
    let hour = ''
    let offset = ''
    for (const { type, value } of this.#format.formatToParts(at)) {
      if (type === 'year') year = Number(value)
      else if (type === 'month') month = Number(value)
      else if (type === 'day') day = Number(value)
      else if (type === 'hour') hour = value
      else if (type === 'timeZoneName') offset = value
    }
    switch (this.#unit) {
      case 'hour':
        return `${year}-${month}-${day} ${hour} ${offset}`
      case 'day':
        return `${year}-${month}-${day}`
      case 'week': {
        // Days since Monday, 1970-01-05, counting local dates.
        const days = Date.UTC(year, month - 1, day) / 86_400_000 - 4
        return String(Math.floor(days / 7))
      }
      case 'month':
        return `${year}-${month}`
    }
  }
}

/** Today, tomorrow, and where a clock that jumps has been. */
const keptWindows = 4

/** Shorter than any window of the unit, so that a walk cannot step over one. */
const stepMs: Record<CalendarUnit, number> = {
  hour: 15 * 60_000,
  day: 6 * 3_600_000,
  week: 86_400_000,
  month: 5 * 86_400_000,
}
