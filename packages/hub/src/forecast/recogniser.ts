import { dayMs, type ZoneClock } from '../schedule/zone-clock.ts'
import { outlook, type PatternState, reachMs, spreadOf, timeOn } from './pattern.ts'
import { burn, join, newSubject, partOf, pass, type SubjectState } from './subject.ts'

/** A key that burns. */
export interface BurningKey {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
}

/** Heat that is expected. */
export interface Expected {
  readonly subject: SubjectState
  readonly pattern: PatternState
  /** Names the occurrence: the pattern's day. */
  readonly day: number
  readonly at: number
  readonly spreadMs: number
  readonly chance: number
  readonly isTrusted: boolean
  /** Names of the keys that it is about. */
  readonly keys: readonly string[]
}

/** Keys and prefixes that are remembered; of more, those go that have no pattern and burnt longest ago. */
const defaultMaxSubjects = 5000
/** A key belongs to its prefix's heat from this part of the openings on … */
const memberPart = 0.5
/** … and follows its opening from this part on, of at least so many: three or four, the older ones counting less. */
const companionPart = 0.7
const companionOpenings = 2.4
const aheadDays = 8
/** Of so many expected times of today, the last ones … */
const quietOf = 8
const leastQuiet = 5
/** … this part did not come: it is a holiday. */
const quietPart = 0.8

/**
 * Recognises heat that comes back.
 *
 * For each key that burns, and for each prefix of such keys, it keeps when it began to. Beginnings within half an hour of the same time of
 * day, on three days or more, are a *pattern*: on a circle of 24 hours, in the wall time of a zone. Of a pattern it keeps two records of
 * when it came and when it did not, both fading: one over all days, one for each day of the week (`pattern.ts`). So "each day at 10:00",
 * "from Monday to Friday" and "each Friday" are the same thing with different records, and a holiday costs a little confidence, which the
 * next days give back. A pattern that twice came at another time instead has moved there.
 *
 * Nothing is expected before the third time, nor after two misses in a row until it comes again.
 *
 * Its work grows with what burns, not with time: two or three additions for each beginning, and for each pattern one a day.
 */
export class Recogniser {
  readonly #subjects = new Map<string, SubjectState>()
  readonly #prefixOf: (key: string) => string
  readonly #changed = new Set<string>()
  readonly #maxSubjects: number
  #days: ZoneClock

  /** `prefixOf` gives the beginning that keys of one kind share; the key itself where it has none. */
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

  /** Takes what burns at a moment; gives keys that are about to, because others of their prefix have begun. */
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

  /** Time passes: what did not come is noted. */
  pass(now: number): void {
    for (const subject of this.#subjects.values()) if (subject.patterns.length > 0) pass(subject, now, this.#days)
  }

  /** For each pattern its next expected time; the soonest first. */
  *expected(now: number): Generator<Expected> {
    for (const subject of this.#subjects.values()) {
      for (const pattern of subject.patterns) {
        const found = this.#next(subject, pattern, now)
        if (found !== undefined) yield found
      }
    }
  }

  /** What is expected to begin before `until`, and certain enough to act on. */
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
   * True where next to nothing came of what was expected today: a holiday, on which the rest of the day's patterns stay away as well, all
   * but the few that begin the day. It ends with the day, or when what is expected comes again.
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

  /** What has changed since the last call, by name, to be kept; undefined is to be deleted. */
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

  /** Takes over what was kept, the most useful where it is too much; what cannot be used is to be deleted. */
  restore(kept: ReadonlyMap<string, string>): void {
    const read = [...kept].map(([id, text]) => [id, this.#parse(text)] as const)
    const usable = read.filter((entry): entry is readonly [string, SubjectState] => entry[1] !== undefined)
    for (const [id, subject] of usable.sort(([, a], [, b]) => worthOf(b) - worthOf(a)).slice(0, this.#maxSubjects))
      this.#subjects.set(id, subject)
    for (const id of kept.keys()) if (!this.#subjects.has(id)) this.#changed.add(id)
  }

  /** Undefined for what somebody else wrote, and for what was learnt in another zone: its times of day are not ours. */
  #parse(text: string): SubjectState | undefined {
    try {
      const { timeZone, ...subject } = JSON.parse(text) as SubjectState & { readonly timeZone?: string }
      if (!Array.isArray(subject.patterns) || typeof subject.name !== 'string') return undefined
      // Versions before this one did not write the zone.
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
    // A prefix of which every key has a pattern of its own says nothing new.
    if (subject.isPrefix && keys.length === 0 && this.#hasOwnPatterns(subject)) return undefined
    const at = this.#days.momentOf(timeOn(pattern, best.day))
    return { subject, pattern, at, spreadMs: spreadOf(pattern), keys, ...best }
  }

  /** Keys that take part in most of a prefix's heat and have no time of their own. */
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

/** What has a pattern is worth more than whatever has none; of two, the one that burnt last. */
function worthOf({ patterns, burntAt }: SubjectState): number {
  // JSON has no infinity: a subject that never burnt says null.
  return (burntAt ?? 0) + (patterns.length > 0 ? Number.MAX_SAFE_INTEGER / 2 : 0)
}

function idOf(redisClusterId: string, name: string, isPrefix: boolean): string {
  return `${isPrefix ? 'prefix' : 'key'} ${redisClusterId} ${name}`
}
