/** A day without a clock change. */
export const dayMs = 86_400_000
/** Offsets only change on the hour or half hour. */
const slotMs = 1_800_000
const maxOffsets = 10_000

/**
 * What the clocks of a time zone show: wall time, as the milliseconds of a UTC that shows the same. In it, something
 * "each day at 10:00" happens every 24 hours, even across the two nights a year when clocks change.
 */
export class ZoneClock {
  readonly timeZone: string
  readonly #format: Intl.DateTimeFormat
  readonly #offsets = new Map<number, number>()

  /** Throws a RangeError if there is no such zone. */
  constructor(timeZone: string) {
    this.timeZone = timeZone
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** What the clocks show at a moment. */
  wallAt(ms: number): number {
    return ms + this.#offset(ms)
  }

  /** The first moment at which the clocks show a time; if they skip it, when they continue. */
  momentOf(wall: number): number {
    // Only the offsets of the day before and the day after are possible at that time.
    const [early, late] = [wall - dayMs, wall + dayMs].map((ms) => wall - this.#offset(ms)) as [number, number]
    const shown = [early, late].filter((moment) => this.wallAt(moment) === wall)
    return shown.length > 0 ? Math.min(...shown) : Math.max(early, late)
  }

  #offset(ms: number): number {
    const slot = Math.floor(ms / slotMs)
    let offset = this.#offsets.get(slot)
    if (offset === undefined) {
      if (this.#offsets.size >= maxOffsets) this.#offsets.clear()
      offset = this.#offsetAt(slot * slotMs)
      this.#offsets.set(slot, offset)
    }
    return offset
  }

  #offsetAt(ms: number): number {
    const part: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(ms)) part[type] = Number(value)
    const { year, month, day, hour, minute, second } = part
    return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) - ms
  }
}
