import { encodeBinaryReport, entryId, type FinderRunView, keyName, type TimerHandle } from '@firebreak/core'
import { type Finding, type FoundKey, unescapeKey } from '@firebreak/find'
import { HubConfigError } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import type { Schedule } from '../schedule/cron.ts'
import { parseSchedule } from '../schedule/parse-schedule.ts'
import type { FinderRuns, SearchedServer } from './finder-runs.ts'

/** A search that recurs. */
export interface FinderPlan {
  readonly redisClusterId: string
  readonly kind: FinderRunView['kind']
  readonly schedule: Schedule
}

export interface ScheduledFindersOptions {
  readonly plans: readonly FinderPlan[]
  readonly finders: FinderRuns
  readonly core: HubCore
}

/** The results of a hot-key search apply until the next one, and no longer than this. */
const maxHeldMs = 3_600_000
const reportMs = 1000
/** Timers last at most 24.8 days, and the wall clock may be set meanwhile: the time is checked this often. */
const waitMs = 3_600_000
const maxKeys = 1000
/** A smaller fraction of a rate may be the estimate's error. */
const leastShare = 0.2
/** The service, host and agent under which results are shown. */
export const finderService = 'finder'
const who = 'the schedule'

/** Reads `CLUSTER hot|big SCHEDULE`; the cluster must be one of the engines. */
export function parseFinderPlans(lines: readonly string[], servers: readonly SearchedServer[]): FinderPlan[] {
  return lines.map((line) => {
    const [, redisClusterId, kind, when] = /^\s*(\S+)\s+(hot|big)\s+(.+)$/.exec(line) ?? []
    if (redisClusterId === undefined)
      throw new HubConfigError('finderSchedule', `finderSchedule: "${line}" must be CLUSTER hot|big every 10m, or cron`)
    if (!servers.some((server) => server.redisClusterId === redisClusterId)) {
      const known = servers.map((server) => server.redisClusterId).join(', ') || 'none'
      const message = `finderSchedule: cluster ${redisClusterId} is not among the engines (${known})`
      throw new HubConfigError('finderSchedule', message)
    }
    try {
      return { redisClusterId, kind: kind as FinderPlan['kind'], schedule: parseSchedule(when!) }
    } catch (error) {
      throw new HubConfigError('finderSchedule', `finderSchedule: ${(error as Error).message}`)
    }
  })
}

/**
 * Searches for hot and big keys on a schedule, and reports the hot ones like a sensor: once a second until the next
 * search, at the rate that the server's counters imply, minus what processes report for the key themselves, which would
 * count twice. For keys measured by a big-key search, the bytes are reported too.
 */
export class ScheduledFinders {
  readonly #options: ScheduledFindersOptions
  /** Plans that came due while another search was running. */
  readonly #waiting = new Set<FinderPlan>()
  readonly #timers = new Map<FinderPlan | 'report', TimerHandle>()
  /** The result of each cluster's last hot-key search, and until when it applies. */
  readonly #found = new Map<string, { readonly keys: readonly HotFind[]; readonly until: number }>()
  /** Bytes of the keys found by each cluster's last big-key search. */
  readonly #sizes = new Map<string, ReadonlyMap<string, number>>()
  /** What was reported for each key a second ago. */
  readonly #reported = new Map<string, number>()
  #sequence = 0

  constructor(options: ScheduledFindersOptions) {
    this.#options = options
  }

  start(): void {
    const { plans, core } = this.#options
    if (plans.length === 0) return
    for (const plan of plans) this.#plan(plan)
    const { timers } = core.options.runtime
    this.#timers.set(
      'report',
      timers.setInterval(() => this.#report(), reportMs),
    )
  }

  close(): void {
    this.#waiting.clear()
    for (const timer of this.#timers.values()) timer.cancel()
  }

  /** A run has ended, whoever started it: its results count as heat. */
  ended({ redisClusterId, kind, state, result, detail, who: starter }: FinderRunView): void {
    const { core, plans } = this.#options
    this.#lookNext()
    const id = `finder:${redisClusterId}/${kind}`
    if (state === 'failed' && starter === who) {
      const cause = `the search for ${kind} keys of ${redisClusterId} failed: ${detail}`
      core.alarms.raise({ id, severity: 'warning', cause, retry: 'at its next scheduled time' })
    } else if (state === 'done') core.alarms.clear(id)
    const found = result as Finding | null
    if (state !== 'done' || found === null || plans.length === 0) return
    if (kind === 'big') {
      const sizes = found.keys.flatMap(({ key, bytes }) => (bytes === undefined ? [] : [[nameOf(key), bytes] as const]))
      this.#sizes.set(redisClusterId, new Map(sizes))
      return
    }
    const keys = found.keys.flatMap(hotFind).slice(0, maxKeys)
    const now = core.options.runtime.wallClock.now()
    const plan = plans.find((known) => known.redisClusterId === redisClusterId && known.kind === 'hot')
    // Until the next search has ended: twice the interval is more than enough.
    const nextMs = (plan?.schedule.next(now) ?? now + maxHeldMs) - now
    this.#found.set(redisClusterId, { keys, until: now + Math.min(maxHeldMs, nextMs * 2) })
  }

  #plan(plan: FinderPlan): void {
    const next = plan.schedule.next(this.#options.core.options.runtime.wallClock.now())
    if (next !== undefined) this.#await(plan, next)
  }

  #await(plan: FinderPlan, at: number): void {
    const { timers, wallClock } = this.#options.core.options.runtime
    const leftMs = at - wallClock.now()
    const wake = () => (wallClock.now() >= at ? this.#look(plan) : this.#await(plan, at))
    this.#timers.set(plan, timers.setTimeout(wake, Math.min(waitMs, leftMs)))
  }

  /** One search at a time, as for users: a plan that is due waits for its turn. */
  #look(plan: FinderPlan): void {
    this.#waiting.add(plan)
    this.#lookNext()
    this.#plan(plan)
  }

  #lookNext(): void {
    const { finders } = this.#options
    const [plan] = this.#waiting
    if (plan === undefined || finders.isBusy) return
    this.#waiting.delete(plan)
    finders.start(plan.kind, plan.redisClusterId, who)
  }

  #report(): void {
    const { core } = this.#options
    const { wallClock, clock } = core.options.runtime
    const { hubId } = core.options
    const sections = [...this.#found].flatMap(([redisClusterId, { keys, until }]) => {
      if (until <= wallClock.now()) {
        this.#found.delete(redisClusterId)
        this.#reported.clear()
        return []
      }
      const sizes = this.#sizes.get(redisClusterId)
      const entries = keys.flatMap(({ key, rate }) => {
        const count = this.#unseen(redisClusterId, key, rate)
        return count === 0 ? [] : [{ key, count, writes: 0, bytes: count * (sizes?.get(key) ?? 0) }]
      })
      return entries.length === 0 ? [] : [{ redisClusterId, entries }]
    })
    if (sections.length === 0) return
    const now = Math.floor(clock.now())
    const sender = { serviceId: finderService, hostId: hubId, instanceId: finderService }
    const report = encodeBinaryReport({ collectTs: now, sendTs: now, ...sender, sections })
    try {
      core.collector.collectBinary(report, 0, ++this.#sequence)
      const instance = core.fleet.hosts.find(finderService, hubId, finderService, clock.now())
      if (instance !== undefined) instance.agent = 'finder'
    } catch (error) {
      core.options.logger.warn(
        { error: (error as Error).message },
        'the results of a finder could not be counted as heat',
      )
    }
  }

  /** The part of a rate that no process reports; a small remainder is the estimate's error. */
  #unseen(redisClusterId: string, key: string, rate: number): number {
    const { core } = this.#options
    const id = entryId(redisClusterId, key)
    const total = core.engine.get(redisClusterId, key)?.lastMinute?.recent(core.now()).accesses ?? 0
    const seen = Math.max(0, total - (this.#reported.get(id) ?? 0))
    const unseen = Math.max(0, Math.round(rate - seen))
    const count = unseen < rate * leastShare ? 0 : unseen
    if (count === 0) this.#reported.delete(id)
    else this.#reported.set(id, count)
    return count
  }
}

interface HotFind {
  readonly key: string
  readonly rate: number
}

function hotFind({ key, accessesPerSecond = 0 }: FoundKey): HotFind[] {
  const rate = Math.round(accessesPerSecond)
  return rate < 1 ? [] : [{ key: nameOf(key), rate }]
}

function nameOf(text: string): string {
  return keyName(unescapeKey(text))
}
