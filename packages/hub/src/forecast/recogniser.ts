import { dayMs, type ZoneClock } from '../schedule/zone-clock.ts'
import { outlook, type PatternState, reachMs, spreadOf, timeOn } from './pattern.ts'
import { burn, join, newSubject, partOf, pass, type SubjectState } from './subject.ts'

/** A key that is hot. */
export interface BurningKey {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
}

/** Heat that is expected. */
export interface Expected {
  readonly subject: SubjectState
  readonly pattern: PatternState
  /** Identifies the occurrence: the pattern's day. */
  readonly day: number
  readonly at: number
  readonly spreadMs: number
  readonly chance: number
  readonly isTrusted: boolean
  /** Names of the keys concerned. */
  readonly keys: readonly string[]
}

/** Keys and prefixes remembered; beyond that, those without a pattern that were hot longest ago are dropped. */
const defaultMaxSubjects = 5000
/** A key belongs to its prefix's heat if it was part of this fraction of the openings … */
const memberPart = 0.5
/**
 * … and follows an opening if it was part of this fraction of at least this many: three or four, older ones counting
 * less.
 */
const companionPart = 0.7
const companionOpenings = 2.4
const aheadDays = 8
/** If, of this many of today's last expected times … */
const quietOf = 8
const leastQuiet = 5
/** … this fraction did not come, it is a holiday. */
const quietPart = 0.8

/**
 * Recognises heat that recurs.
 *
 * For each hot key, and each prefix of such keys, it keeps when the heat began. Beginnings within half an hour of the
 * same time of day, on three days or more, are a *pattern*: on a circle of 24 hours, in the wall time of a zone. For a
 * pattern it keeps two fading records of hits and misses: one over all days, one for each day of the week
 * (`pattern.ts`). So "each day at 10:00", "from Monday to Friday" and "each Friday" are the same thing with different
 * records, and a holiday costs a little confidence, which the next days restore. A pattern that twice came at another
 * time instead has moved there.
 *
 * Nothing is expected before the third time, nor after two misses in a row until it comes again.
 *
 * Its work grows with the number of hot keys, not with time: two or three additions for each beginning, and one a day
 * for each pattern.
 */
export class Recogniser {
  readonly #subjects = new Map<string, SubjectState>()
  readonly #prefixOf: (key: string) => string
  readonly #changed = new Set<string>()
  readonly #maxSubjects: number
  #days: ZoneClock

  /** `prefixOf` returns the prefix that keys of one kind share, or the key itself if it has none. */
  constructor(days: ZoneClock, prefixOf: (key: string) => string, maxSubjects = defaultMaxSubjects) {
    this.#days = days
    this.#prefixOf = prefixOf
    this.#maxSubjects = maxSubjects
  }

  /** With another zone, times of day differ and patterns are learned again. */
  setDays(days: ZoneClock): void {
    if (days.timeZone === this.#days.timeZone) return
    this.#days = days
    for (const id of this.#subjects.keys()) this.#changed.add(id)
    this.#subjects.clear()
  }

  get days(): ZoneClock {
    return this.#days
  }

  /**
   * Takes the keys that are hot at a moment; returns keys that are about to be, because others with their prefix have
   * become hot.
   */
  observe(burning: Iterable<BurningKey>, now: number): BurningKey[] {
    const following: BurningKey[] = []
    for (const { redisClusterId, key } of burning) {
      const own = this.#subject(redisClusterId, key, false)
      const begins = burn(own, now, this.#days)
      const name = this.#prefixOf(key)
      if (name === key) continue
      const prefix = this.#subject(redisClusterId, name, true)
      const companions = this.#companions(prefix, key)
      if (burn(prefix, now, this.#days)) following.push(...companions.map((other) => ({ redisClusterId, key: other })))
      if (begins) join(prefix, key)
    }
    return following
  }

  /** Time passes: records what did not come. */
  pass(now: number): void {
    for (const subject of this.#subjects.values()) if (subject.patterns.length > 0) pass(subject, now, this.#days)
  }

  /** The next expected time of each pattern, soonest first. */
  *expected(now: number): Generator<Expected> {
    for (const subject of this.#subjects.values()) {
      for (const pattern of subject.patterns) {
        const found = this.#next(subject, pattern, now)
        if (found !== undefined) yield found
      }
    }
  }

  /** What is expected to begin before `until` and is certain enough to act on. */
  *soon(now: number, until: number): Generator<Expected> {
    const [local, end] = [this.#days.wallAt(now), this.#days.wallAt(until)]
    for (const subject of this.#subjects.values()) {
      for (const pattern of subject.patterns) {
        const day = Math.max(pattern.judged + 1, Math.ceil((local - pattern.centre) / dayMs))
        if (timeOn(pattern, day) > end || !outlook(pattern, day).isTrusted) continue
        const found = this.#next(subject, pattern, now)
        if (found !== undefined) yield found
      }
    }
  }

  /**
   * True if hardly anything expected today came: a holiday, on which the rest of the day's patterns will not come
   * either, except the few that begin the day. It ends with the day, or when something expected comes again.
   */
  isQuiet(now: number): boolean {
    const today = Math.floor(this.#days.wallAt(now) / dayMs)
    const judged: { readonly at: number; readonly came: boolean }[] = []
    for (const { isPrefix, patterns } of this.#subjects.values()) {
      if (isPrefix) continue
      for (const pattern of patterns) {
        const came = pattern.lastHit === today
        if (came || pattern.expectedMisses.includes(today)) judged.push({ at: timeOn(pattern, today), came })
      }
    }
    const latest = judged.sort((a, b) => b.at - a.at).slice(0, quietOf)
    return latest.length >= leastQuiet && latest.filter(({ came }) => !came).length >= quietPart * latest.length
  }

  /** Changes since the last call, by name, to be saved; undefined: to be deleted. */
  takeChanged(): Map<string, string | undefined> {
    const { timeZone } = this.#days
    const kept = new Map<string, string | undefined>()
    for (const id of this.#changed) {
      const subject = this.#subjects.get(id)
      kept.set(id, subject && JSON.stringify({ ...subject, timeZone }))
    }
    this.#changed.clear()
    return kept
  }

  /** Loads what was saved, the most useful if it is too much; what cannot be used will be deleted. */
  restore(kept: ReadonlyMap<string, string>): void {
    const read = [...kept].map(([id, text]) => [id, this.#parse(text)] as const)
    const usable = read.filter((entry): entry is readonly [string, SubjectState] => entry[1] !== undefined)
    for (const [id, subject] of usable.sort(([, a], [, b]) => worthOf(b) - worthOf(a)).slice(0, this.#maxSubjects))
      this.#subjects.set(id, subject)
    for (const id of kept.keys()) if (!this.#subjects.has(id)) this.#changed.add(id)
  }

  /** Undefined for unknown formats, and for what was learned in another zone, whose times of day differ. */
  #parse(text: string): SubjectState | undefined {
    try {
      const { timeZone, ...subject } = JSON.parse(text) as SubjectState & { readonly timeZone?: string }
      if (!Array.isArray(subject.patterns) || typeof subject.name !== 'string') return undefined
      // Earlier versions did not save the zone.
      return timeZone === undefined || timeZone === this.#days.timeZone ? subject : undefined
    } catch {
      return undefined
    }
  }

  #next(subject: SubjectState, pattern: PatternState, now: number): Expected | undefined {
    const local = this.#days.wallAt(now)
    const first = Math.max(pattern.judged + 1, Math.ceil((local - pattern.centre - reachMs) / dayMs))
    const days = Array.from({ length: aheadDays }, (_, index) => ({
      day: first + index,
      ...outlook(pattern, first + index),
    }))
    const best = days.find(({ isTrusted }) => isTrusted) ?? days.reduce((a, b) => (b.chance > a.chance ? b : a))
    const keys = subject.isPrefix ? this.#members(subject, pattern) : [subject.name]
    // A prefix all of whose keys have their own pattern adds nothing.
    if (subject.isPrefix && keys.length === 0 && this.#hasOwnPatterns(subject)) return undefined
    const at = this.#days.momentOf(timeOn(pattern, best.day))
    return { subject, pattern, at, spreadMs: spreadOf(pattern), keys, ...best }
  }

  /** Keys that are part of most of a prefix's heat and have no pattern of their own. */
  #members(subject: SubjectState, pattern: PatternState): string[] {
    return Object.keys(subject.members).filter(
      (key) => partOf(subject, key) >= memberPart && !this.#hasPatternAt(subject.redisClusterId, key, pattern),
    )
  }

  #companions(prefix: SubjectState, key: string): string[] {
    if (prefix.openings < companionOpenings) return []
    return Object.keys(prefix.members).filter((other) => other !== key && partOf(prefix, other) >= companionPart)
  }

  #hasOwnPatterns({ redisClusterId, members }: SubjectState): boolean {
    return Object.keys(members).some(
      (key) => (this.#subjects.get(idOf(redisClusterId, key, false))?.patterns.length ?? 0) > 0,
    )
  }

  #hasPatternAt(redisClusterId: string, key: string, { centre }: PatternState): boolean {
    const patterns = this.#subjects.get(idOf(redisClusterId, key, false))?.patterns ?? []
    return patterns.some((own) => {
      const away = Math.abs(own.centre - centre) % dayMs
      return Math.min(away, dayMs - away) <= 2 * reachMs
    })
  }

  #subject(redisClusterId: string, name: string, isPrefix: boolean): SubjectState {
    const id = idOf(redisClusterId, name, isPrefix)
    this.#changed.add(id)
    let subject = this.#subjects.get(id)
    if (subject === undefined) {
      if (this.#subjects.size >= this.#maxSubjects) this.#forgetOne()
      subject = newSubject(redisClusterId, name, isPrefix)
      this.#subjects.set(id, subject)
    }
    return subject
  }

  #forgetOne(): void {
    let least: [string, number] | undefined
    for (const [id, subject] of this.#subjects) {
      const worth = worthOf(subject)
      if (least === undefined || worth < least[1]) least = [id, worth]
    }
    if (least === undefined) return
    this.#subjects.delete(least[0])
    this.#changed.add(least[0])
  }
}

/** A subject with a pattern is worth more than one without; of two, the one that was hot last. */
function worthOf({ patterns, burntAt }: SubjectState): number {
  // JSON has no infinity: a subject that was never hot has null.
  return (burntAt ?? 0) + (patterns.length > 0 ? Number.MAX_SAFE_INTEGER / 2 : 0)
}

function idOf(redisClusterId: string, name: string, isPrefix: boolean): string {
  return `${isPrefix ? 'prefix' : 'key'} ${redisClusterId} ${name}`
}
