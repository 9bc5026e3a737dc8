import type { ForecastSettings, ForecastView, Runtime } from '@firebreak/core'
import type { PrewarmJob, PrewarmJobs } from '../prewarm/prewarm-job.ts'
import { ZoneClock } from '../schedule/zone-clock.ts'
import type { HubStore } from '../store/hub-store.ts'
import type { PastMinute } from './learn-from-history.ts'
import { reachMs } from './pattern.ts'
import { type BurningKey, type Expected, Recogniser } from './recogniser.ts'
import { jobReason, recurrenceView } from './recurrence-view.ts'

export interface ForecasterOptions {
  readonly store: Pick<HubStore, 'records' | 'saveRecord'> & Pick<PrewarmJobs, 'saveJob'>
  readonly runtime: Pick<Runtime, 'wallClock'>
  /** The keys that reach their rule's threshold at a moment of the hub's clock. */
  readonly burning: (hubNow: number) => Iterable<BurningKey>
  /** The prefix that keys of one kind share. */
  readonly prefixOf: (key: string) => string
  /** Makes keys hot at once. */
  readonly warm: (job: PrewarmJob) => void
}

export const forecastDefaults: ForecastSettings = { mode: 'suggest', leadMs: 120_000, timeZone: 'UTC' }

const settingsKind = 'forecast-settings'
const subjectsKind = 'forecast'
/** How often to check what is coming up, and how often to save what was learned. */
const planMs = 10_000
const keepMs = 60_000
/** A job is created this long before its time, so that when it is due either every hub has created it or none. */
const planAheadMs = 10 * 60_000
/** Keys stay warm this long after the time by which they usually get hot. */
const lateMs = 10 * 60_000
const leastMarginMs = 5 * 60_000
/** How long keys are held that follow one that just became hot. */
const followMs = 10 * 60_000
/** Maximum number of warm-ups whose outcome is not known yet. */
const maxPending = 10_000

interface WarmUp {
  readonly subject: Expected['subject']
  readonly from: number
  readonly until: number
}

/**
 * Remembers which keys were hot when, and has them warmed shortly before they will be again: by jobs in the store, each
 * carried out by one of the hubs. Every hub learns by itself; a job's name follows from its purpose, so that several
 * hubs create the same one.
 */
export class Forecaster {
  readonly #options: ForecasterOptions
  #recogniser: Recogniser
  #settings: ForecastSettings = forecastDefaults
  #plannedAt = Number.NEGATIVE_INFINITY
  #keptAt = Number.NEGATIVE_INFINITY
  #learntAt: number | null = null
  #warmed = 0
  #inTime = 0
  /** The occurrences that jobs were created for, by job name. */
  readonly #pending = new Map<string, WarmUp>()

  constructor(options: ForecasterOptions) {
    this.#options = options
    this.#recogniser = new Recogniser(new ZoneClock(forecastDefaults.timeZone), options.prefixOf)
  }

  get settings(): ForecastSettings {
    return this.#settings
  }

  /** Loads the users' settings. */
  async load(): Promise<void> {
    const kept = (await this.#options.store.records(settingsKind)).get('settings')
    this.#setSettings(kept === undefined ? forecastDefaults : { ...forecastDefaults, ...(JSON.parse(kept) as object) })
  }

  /** Restores what was learned before a restart; false if there is nothing. */
  async restore(): Promise<boolean> {
    await this.load()
    const kept = await this.#options.store.records(subjectsKind)
    this.#recogniser.restore(kept)
    return kept.size > 0
  }

  /** Learns from what was recorded before. */
  learn(minutes: readonly PastMinute[]): void {
    for (const { at, burning } of minutes) {
      this.#recogniser.pass(at)
      this.#recogniser.observe(burning, at)
    }
  }

  async saveSettings(settings: ForecastSettings): Promise<void> {
    await this.#options.store.saveRecord(settingsKind, 'settings', JSON.stringify(settings))
    this.#setSettings(settings)
  }

  /** Called once a second, or less often; `hubNow` is the time of the turn, which runs late if threads count. */
  tick(hubNow: number): void {
    const now = this.#options.runtime.wallClock.now()
    const following = this.#recogniser.observe(this.#options.burning(hubNow), now)
    if (this.#settings.mode === 'do') this.#follow(following, now)
    if (now - this.#plannedAt >= planMs || now < this.#plannedAt) {
      this.#plannedAt = now
      this.#learntAt = now
      this.#recogniser.pass(now)
      this.#settle(now)
      this.#plan(now)
    }
    if (now - this.#keptAt < keepMs && now >= this.#keptAt) return
    this.#keptAt = now
    void this.keep()
  }

  /** Saves what was learned; an unreachable store gets it with the next change. */
  async keep(): Promise<void> {
    for (const [id, text] of this.#recogniser.takeChanged())
      await this.#options.store.saveRecord(subjectsKind, id, text).catch(() => {})
  }

  view(): ForecastView {
    const now = this.#options.runtime.wallClock.now()
    const { leadMs } = this.#settings
    const recurrences = [...this.#recogniser.expected(now)]
      .sort((a, b) => Number(b.isTrusted) - Number(a.isTrusted) || a.at - b.at)
      .map((expected) => recurrenceView(expected, this.#recogniser.days, warmAtOf(expected, leadMs)))
    return {
      settings: this.#settings,
      recurrences,
      isQuiet: this.#recogniser.isQuiet(now),
      learntAt: this.#learntAt,
      warmed: this.#warmed,
      inTime: this.#inTime,
    }
  }

  #setSettings(settings: ForecastSettings): void {
    // What was learned is then forgotten, including pending outcomes.
    if (settings.timeZone !== this.#settings.timeZone) this.#pending.clear()
    this.#settings = settings
    this.#recogniser.setDays(new ZoneClock(settings.timeZone))
  }

  /** Creates jobs for what is expected soon and certain enough. */
  #plan(now: number): void {
    const { mode, leadMs } = this.#settings
    if (mode !== 'do' || this.#recogniser.isQuiet(now)) return
    // The widest spread is half an hour.
    for (const expected of this.#recogniser.soon(now, now + planAheadMs + leadMs + reachMs)) {
      const at = warmAtOf(expected, leadMs)
      if (!expected.isTrusted || expected.keys.length === 0) continue
      const until = expected.at + marginOf(expected) + lateMs
      const { subject, pattern, day, keys } = expected
      // Patterns of a key are at least `reachMs` apart when found. If two hubs round differently, a key is warmed
      // twice.
      const time = Math.round(pattern.centre / reachMs)
      const id = `forecast ${subject.isPrefix ? 'prefix' : 'key'} ${subject.redisClusterId} ${subject.name} ${time} ${day}`
      // Not created after its time: it may already have been carried out.
      if (now < at - planAheadMs || now >= at || this.#pending.has(id) || this.#pending.size >= maxPending) continue
      this.#pending.set(id, { subject, from: at, until })
      const { redisClusterId } = subject
      const job = { id, redisClusterId, keys, services: [], at, forMs: until - at, values: {} }
      const who = jobReason(expected, this.#recogniser.days)
      void this.#options.store.saveJob({ ...job, who }).catch(() => {})
    }
  }

  /** Judges warm-ups whose time is over: did the heat come? */
  #settle(now: number): void {
    for (const [id, { subject, from, until }] of this.#pending) {
      // Heat that began before the keys were warm was not warmed in time.
      const came = subject.lastAt >= from && subject.lastAt < until
      if (!came && now < until) continue
      this.#pending.delete(id)
      this.#warmed++
      if (came) this.#inTime++
    }
  }

  /** Other keys with the prefix have become hot: those that always follow are warmed now. */
  #follow(following: readonly BurningKey[], now: number): void {
    const byCluster = Map.groupBy(following, ({ redisClusterId }) => redisClusterId)
    for (const [redisClusterId, keys] of byCluster) {
      const names = keys.map(({ key }) => key)
      const job = {
        id: `follow ${now}`,
        redisClusterId,
        keys: names,
        services: [],
        at: now,
        forMs: followMs,
        values: {},
      }
      this.#options.warm({
        ...job,
        who: 'forecast: other keys with the prefix have become hot, and these always follow',
      })
    }
  }
}

/**
 * How far from its time it may come in nearly all cases: nine of ten came within the spread, and the distribution has a
 * tail.
 */
function marginOf({ spreadMs }: Expected): number {
  return Math.min(reachMs, Math.max(leastMarginMs, spreadMs * 1.6))
}

/** The lead before the earliest time at which it may come. */
function warmAtOf(expected: Expected, leadMs: number): number {
  return expected.at - marginOf(expected) - leadMs
}
