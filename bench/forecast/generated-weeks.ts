import { seededRandom } from '@firebreak/testkit'

export const minuteMs = 60_000
export const dayMs = 86_400_000

/** One time that a key burns. */
export interface Burn {
  readonly key: string
  readonly from: number
  readonly to: number
  /** False for heat that follows no pattern. */
  readonly isRecurring: boolean
  /** Which occurrence of its pattern it is, from 0. */
  readonly nth: number
  /** It follows the first key of its prefix, whose opening it takes part in. */
  readonly follows?: boolean
}

export interface GeneratedWeeks {
  readonly from: number
  readonly to: number
  /** By their beginning. */
  readonly burns: readonly Burn[]
  readonly patterns: number
}

interface Pattern {
  readonly key: string
  /** Days of the week on which it comes; 0 is Sunday. */
  readonly weekdays: readonly number[]
  /** Minutes after midnight, local. */
  readonly minute: number
  /** Standard deviation in minutes. */
  readonly jitter: number
  /** Minutes that it becomes later each week. */
  readonly drift: number
  /** From this week on it comes so many minutes later or earlier, for good. */
  readonly moved: { readonly week: number; readonly by: number } | undefined
}

/**
 * Weeks of heat in the wall time of Berlin, where clocks are moved in the fourth week: keys that burn each day, on workdays, on one or two
 * days of the week, all with their own jitter; on holidays, one day in `holidayEvery`, none does, and now and then one stays away. Some times drift, some move for
 * good. Besides, every key burns at random times too, and some keys do nothing else; and keys of some prefixes burn together, at times
 * that nobody can know.
 */
export function generateWeeks(seed: number, weeks: number, patternCount: number, holidayEvery = 35): GeneratedWeeks {
  const random = seededRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  // A Monday; local time is UTC+2 until the last Sunday of October, then UTC+1.
  const from = Date.UTC(2026, 8, 28) - 2 * 3_600_000
  const winter = Date.UTC(2026, 9, 25, 1)
  const moment = (local: number) => (local - 2 * 3_600_000 < winter ? local - 2 * 3_600_000 : local - 3_600_000)
  const firstDay = Date.UTC(2026, 8, 28)
  const days = weeks * 7
  const holidays = new Set(Array.from({ length: Math.round(days / holidayEvery) }, () => Math.floor(random() * days)))
  const all = [0, 1, 2, 3, 4, 5, 6]
  const patterns = Array.from({ length: patternCount }, (_, index): Pattern => {
    const kind = random()
    const weekdays =
      kind < 0.45 ? all : kind < 0.7 ? [1, 2, 3, 4, 5] : kind < 0.9 ? [pick(all)] : [...new Set([pick(all), pick(all)])]
    return {
      key: `shop:${index}`,
      weekdays,
      minute: Math.floor(random() * 1440),
      jitter: 1 + random() * 5,
      drift: random() < 0.15 ? (random() - 0.5) * 6 : 0,
      moved:
        random() < 0.12
          ? {
              week: 3 + Math.floor(random() * (weeks - 5)),
              by: (random() < 0.5 ? -1 : 1) * (60 + Math.floor(random() * 240)),
            }
          : undefined,
    }
  })
  const burns: Burn[] = []
  for (const { key, weekdays, minute, jitter, drift, moved } of patterns) {
    let nth = 0
    for (let day = 0; day < days; day++) {
      const week = Math.floor(day / 7)
      // The first day is a Monday.
      if (!weekdays.includes((day + 1) % 7) || holidays.has(day) || random() < 0.02) continue
      const away = moved !== undefined && week >= moved.week ? moved.by : 0
      const local = firstDay + day * dayMs + (minute + drift * week + away + normal() * jitter) * minuteMs
      const start = moment(local)
      burns.push({ key, from: start, to: start + (5 + random() * 35) * minuteMs, isRecurring: true, nth: nth++ })
    }
  }
  const noisy = [...patterns.map(({ key }) => ({ key, perWeek: 0.5 })), ...noiseKeys(patternCount, random)]
  for (const { key, perWeek } of noisy) {
    for (let at = 0; ; ) {
      at += (-Math.log(1 - random()) * 7 * dayMs) / perWeek
      if (at >= days * dayMs) break
      const to = from + at + (5 + random() * 20) * minuteMs
      burns.push({ key, from: from + at, to, isRecurring: false, nth: 0 })
    }
  }
  burns.push(...openings(seed, from, days))
  burns.sort((a, b) => a.from - b.from)
  return { from, to: from + days * dayMs, burns, patterns: patternCount }
}

/** The beginning that keys of one kind share; only those of openings have one. */
export function prefixOf(key: string): string {
  return key.startsWith('sale') ? key.slice(0, key.indexOf(':') + 1) : key
}

const prefixes = 10

/**
 * Sales that open at random times, about every five days: one key of the prefix is the first, three to seven others
 * follow within ten minutes, each of them nine times of ten, and now and then one that is never seen again.
 */
function openings(seed: number, from: number, days: number): Burn[] {
  const random = seededRandom(seed + 1_000_003)
  return Array.from({ length: prefixes }, (_, index) => index).flatMap((index) => {
    const others = 3 + Math.floor(random() * 5)
    const burns: Burn[] = []
    let nth = 0
    for (let at = 0; ; nth++) {
      at += (1 - Math.log(1 - random()) * 4) * dayMs
      if (at >= (days - 1) * dayMs) return burns
      const add = (name: string, delay: number, follows: boolean) => {
        const start = from + at + delay * minuteMs
        const to = start + (10 + random() * 30) * minuteMs
        burns.push({ key: `sale${index}:${name}`, from: start, to, isRecurring: false, nth, follows })
      }
      add('first', 0, false)
      for (let other = 0; other < others; other++) if (random() < 0.9) add(`other-${other}`, 2 + random() * 8, true)
      if (random() < 0.3) add(`only-${nth}`, 2 + random() * 8, false)
    }
  })
}

/** Keys that burn at random only, from once a fortnight to once a day. */
function noiseKeys(patternCount: number, random: () => number): { readonly key: string; readonly perWeek: number }[] {
  return Array.from({ length: Math.ceil(patternCount / 2) }, (_, index) => ({
    key: `news:${index}`,
    perWeek: 0.5 + random() * 6.5,
  }))
}
