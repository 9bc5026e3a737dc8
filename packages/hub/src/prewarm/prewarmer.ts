import { readFileSync, rmSync } from 'node:fs'
import type { Runtime, TimerHandle } from '@firebreak/core'
import { ApiProblem } from '../errors.ts'
import { parseSchedule } from '../schedule/parse-schedule.ts'
import type { PrewarmJob, PrewarmJobs, PrewarmResult } from './prewarm-job.ts'

export interface PrewarmerOptions {
  /** Stores pending jobs; if hubs share it, one of them runs each. */
  readonly store: PrewarmJobs
  /** Makes keys hot now. */
  readonly warm: (job: PrewarmJob) => PrewarmResult
  /** Puts a value into the protected Redis; without it jobs with values are refused. */
  readonly writeValue?: ((redisClusterId: string, key: string, value: string) => Promise<void>) | undefined
  /** Services with a process at any hub. */
  readonly services: () => readonly string[]
  /** A job failed and will not be retried. */
  readonly onFailure: (job: PrewarmJob, error: Error) => void
  /**
   * Called with jobs whose keys reach nobody because none of their services is connected; again whenever the number
   * changes.
   */
  readonly onUnreached: (jobs: readonly PrewarmJob[]) => void
  readonly runtime: Runtime
}

/** A job that was carried out and has not expired. */
interface RunningJob {
  readonly job: PrewarmJob
  readonly until: number
  /** The services that have its keys. */
  readonly reached: Set<string>
}

/** How often the store is checked for due jobs. */
const pollMs = 500
/** A hub that took a job and is not done by then counts as dead. */
const leaseMs = 30_000
/** Jobs kept open for services that connect later; beyond that the oldest are dropped. */
const maxRunning = 1000

/**
 * Runs pre-warm jobs at their time, including those that a dead hub took or that were requested before a restart. A job
 * without services applies to any service until it expires: one deployed two minutes later gets its keys warm as well.
 */
export class Prewarmer {
  readonly #options: PrewarmerOptions
  readonly #running = new Map<string, RunningJob>()
  #unreached = 0
  #timer: TimerHandle | undefined
  #isPolling = false

  constructor(options: PrewarmerOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = this.#options.runtime.timers.setInterval(() => void this.#poll(), pollMs)
  }

  /** Wall time, in which jobs are scheduled. */
  now(): number {
    return this.#options.runtime.wallClock.now()
  }

  get canWriteValues(): boolean {
    return this.#options.writeValue !== undefined
  }

  /** Pending jobs, the next first. */
  jobs(): Promise<readonly PrewarmJob[]> {
    return this.#options.store.jobs()
  }

  /** Runs a job now, or stores it until its time; returns a result only if it ran. */
  async add(job: Omit<PrewarmJob, 'id'>): Promise<{ job: PrewarmJob; result: PrewarmResult | undefined }> {
    const whole = { ...job, id: this.#options.runtime.newId() }
    if (job.at <= this.now()) return { job: whole, result: await this.#run(whole) }
    if (!(await this.#options.store.saveJob(whole))) {
      const message = 'the maximum number of pre-warm jobs (maxJobs) is reached; cancel some, or name more keys in each'
      throw new ApiProblem(429, 'FB_PREWARM_FULL', message)
    }
    return { job: whole, result: undefined }
  }

  /** False if there is no such job. */
  cancel(id: string): Promise<boolean> {
    return this.#options.store.deleteJob(id)
  }

  /** Services that come from now on do not get this key of a job that is under way. */
  release(redisClusterId: string, key: string): void {
    for (const [id, running] of this.#running) {
      const { job } = running
      if (job.redisClusterId !== redisClusterId || !job.keys.includes(key)) continue
      const keys = job.keys.filter((one) => one !== key)
      if (keys.length === 0) this.#running.delete(id)
      else this.#running.set(id, { ...running, job: { ...job, keys } })
    }
  }

  close(): void {
    this.#timer?.cancel()
  }

  async #poll(): Promise<void> {
    // A slow store is not queried again meanwhile.
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      this.#reachNew()
      const jobs = await this.#options.store.takeJobs(this.now(), leaseMs)
      await Promise.all(jobs.map((job) => this.#runDue(job)))
    } catch {
      // The store is unreachable, which its writers report; due jobs stay due.
    } finally {
      this.#isPolling = false
    }
  }

  async #runDue(job: PrewarmJob): Promise<void> {
    try {
      if (untilOf(job) <= this.now())
        throw new Error(`its time, ${new Date(job.at).toISOString()}, passed while no hub was running`)
      const { unmatched } = await this.#run(job)
      if (unmatched.length > 0)
        this.#options.onFailure(job, new Error(`no rule does anything for ${unmatched.slice(0, 5).join(', ')}`))
    } catch (error) {
      this.#options.onFailure(job, error as Error)
    }
    const next = job.schedule === undefined ? undefined : parseSchedule(job.schedule).next(this.now())
    await this.#options.store.finishJob(job.id, next === undefined ? undefined : { ...job, at: next })
  }

  async #run(job: PrewarmJob): Promise<PrewarmResult> {
    const { writeValue } = this.#options
    // The value first: a key that is hot before its value exists would be cached as missing.
    if (writeValue !== undefined) {
      await Promise.all(Object.entries(job.values).map(([key, value]) => writeValue(job.redisClusterId, key, value)))
    }
    const result = this.#options.warm({ ...job, forMs: untilOf(job) - this.now() })
    if (job.services.length === 0) this.#holdOpen(job)
    return result
  }

  #holdOpen(job: PrewarmJob): void {
    this.#running.delete(job.id)
    this.#running.set(job.id, { job, until: untilOf(job), reached: new Set(this.#options.services()) })
    if (this.#running.size > maxRunning) this.#running.delete(this.#running.keys().next().value!)
    this.#tellUnreached()
  }

  /** Services that have connected since a job was carried out get its keys for the rest of its time. */
  #reachNew(): void {
    if (this.#running.size === 0) return
    const now = this.now()
    const services = this.#options.services()
    for (const [id, { job, until, reached }] of this.#running) {
      if (now >= until) {
        this.#running.delete(id)
        continue
      }
      const fresh = services.filter((service) => !reached.has(service))
      if (fresh.length === 0) continue
      // Reported once: what fails for a service now fails each time.
      for (const service of fresh) reached.add(service)
      try {
        this.#options.warm({ ...job, services: fresh, forMs: until - now })
      } catch (error) {
        this.#options.onFailure(job, error as Error)
      }
    }
    this.#tellUnreached()
  }

  #tellUnreached(): void {
    const unreached = [...this.#running.values()].filter(({ reached }) => reached.size === 0)
    if (unreached.length === this.#unreached) return
    this.#unreached = unreached.length
    this.#options.onUnreached(unreached.map(({ job }) => job))
  }
}

function untilOf({ at, forMs }: PrewarmJob): number {
  return at + forMs
}

/** Imports the jobs that earlier versions kept in a separate file. */
export async function importJobs(file: string, store: PrewarmJobs): Promise<void> {
  let jobs: PrewarmJob[]
  try {
    jobs = JSON.parse(readFileSync(file, 'utf8')) as PrewarmJob[]
  } catch {
    return
  }
  for (const job of jobs) await store.saveJob(job)
  rmSync(file)
}
