import { readFileSync, rmSync } from 'node:fs'
import type { Runtime, TimerHandle } from '@firebreak/core'
import { ApiProblem } from '../errors.ts'
import type { PrewarmJob, PrewarmJobs, PrewarmResult } from './prewarm-job.ts'

export interface PrewarmerOptions {
  /** Keeps jobs to come; where hubs share it, one of them runs each. */
  readonly store: PrewarmJobs
  /** Makes keys hot now. */
  readonly warm: (job: PrewarmJob) => PrewarmResult
  /** Puts a value into the protected Redis; without it jobs with values are refused. */
  readonly writeValue?: ((redisClusterId: string, key: string, value: string) => Promise<void>) | undefined
  /** A job failed, and is not tried again. */
  readonly onFailure: (job: PrewarmJob, error: Error) => void
  readonly runtime: Runtime
}

/** How often the store is asked for what is due. */
const pollMs = 500
/** A hub that took a job and is not done by then is taken for dead. */
const leaseMs = 30_000

/** Runs pre-warm jobs at their time, also those that another hub took, or that were asked for before a restart. */
export class Prewarmer {
  readonly #options: PrewarmerOptions
  #timer: TimerHandle | undefined
  #isPolling = false

  constructor(options: PrewarmerOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = this.#options.runtime.timers.setInterval(() => void this.#poll(), pollMs)
  }

  /** Wall time, which jobs are asked for in. */
  now(): number {
    return this.#options.runtime.wallClock.now()
  }

  get canWriteValues(): boolean {
    return this.#options.writeValue !== undefined
  }

  /** Jobs to come, the next first. */
  jobs(): Promise<readonly PrewarmJob[]> {
    return this.#options.store.jobs()
  }

  /** Runs a job now, or keeps it until its time; a result only where it ran. */
  async add(job: Omit<PrewarmJob, 'id'>): Promise<{ job: PrewarmJob; result: PrewarmResult | undefined }> {
    const whole = { ...job, id: this.#options.runtime.newId() }
    if (job.at <= this.now()) return { job: whole, result: await this.#run(whole) }
    if (!(await this.#options.store.saveJob(whole))) {
      const message = 'there are as many pre-warm jobs as are kept (maxJobs); cancel some, or name more keys in each'
      throw new ApiProblem(429, 'FB_PREWARM_FULL', message)
    }
    return { job: whole, result: undefined }
  }

  /** False where there is no such job. */
  cancel(id: string): Promise<boolean> {
    return this.#options.store.deleteJob(id)
  }

  close(): void {
    this.#timer?.cancel()
  }

  async #poll(): Promise<void> {
    // A store that is slow is not asked again meanwhile.
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      const jobs = await this.#options.store.takeJobs(this.now(), leaseMs)
      await Promise.all(jobs.map((job) => this.#runDue(job)))
    } catch {
      // The store is away, which is told of by whoever writes to it; what is due stays due.
    } finally {
      this.#isPolling = false
    }
  }

  async #runDue(job: PrewarmJob): Promise<void> {
    try {
      const { unmatched } = await this.#run(job)
      if (unmatched.length > 0)
        this.#options.onFailure(job, new Error(`no rule does anything for ${unmatched.slice(0, 5).join(', ')}`))
    } catch (error) {
      this.#options.onFailure(job, error as Error)
    }
    await this.#options.store.deleteJob(job.id)
  }

  async #run(job: PrewarmJob): Promise<PrewarmResult> {
    const { writeValue } = this.#options
    // The value first: a key that is hot before it is there would be cached as missing.
    if (writeValue !== undefined) {
      await Promise.all(Object.entries(job.values).map(([key, value]) => writeValue(job.redisClusterId, key, value)))
    }
    return this.#options.warm(job)
  }
}

/** Takes over the jobs that earlier versions kept in a file of their own. */
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
