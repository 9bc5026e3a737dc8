import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Runtime, TimerHandle } from '@firebreak/core'

/** Keys that are to be hot before anybody asks for them. */
export interface PrewarmJob {
  readonly id: string
  readonly redisClusterId: string
  readonly keys: readonly string[]
  /** Services that get them; empty: all that are connected at that time. */
  readonly services: readonly string[]
  /** When, wall time in milliseconds. */
  readonly at: number
  /** How long they stay hot without being read. */
  readonly forMs: number
  /** Values to put into Redis first, by key. */
  readonly values: Readonly<Record<string, string>>
  readonly who: string
}

/** How a job ended. */
export interface PrewarmResult {
  readonly warmed: number
  /** Keys that no rule matches: nothing would ever be done for them. */
  readonly unmatched: readonly string[]
}

export interface PrewarmerOptions {
  /** Makes keys hot now. */
  readonly warm: (job: PrewarmJob) => PrewarmResult
  /** Puts a value into the protected Redis; without it jobs with values are refused. */
  readonly writeValue?: ((redisClusterId: string, key: string, value: string) => Promise<void>) | undefined
  /** Where jobs to come are kept. @default in memory only */
  readonly file?: string | undefined
  readonly onFailure: (job: PrewarmJob, error: Error) => void
  readonly runtime: Runtime
}

/** Timers of the runtime end at 24 days; a job later than this is looked at again then. */
const longestTimerMs = 86_400_000

/** Runs pre-warm jobs at their time, also those that were asked for before a restart. */
export class Prewarmer {
  readonly #options: PrewarmerOptions
  readonly #jobs = new Map<string, PrewarmJob>()
  readonly #timers = new Map<string, TimerHandle>()

  constructor(options: PrewarmerOptions) {
    this.#options = options
    for (const job of this.#read()) this.#schedule(job)
  }

  /** Wall time, which jobs are asked for in. */
  now(): number {
    return this.#options.runtime.wallClock.now()
  }

  get canWriteValues(): boolean {
    return this.#options.writeValue !== undefined
  }

  /** Jobs to come, the next first. */
  jobs(): PrewarmJob[] {
    return [...this.#jobs.values()].sort((a, b) => a.at - b.at)
  }

  /** Runs a job now, or schedules it; a result only where it ran. */
  async add(job: Omit<PrewarmJob, 'id'>): Promise<{ job: PrewarmJob; result: PrewarmResult | undefined }> {
    const whole = { ...job, id: this.#options.runtime.newId() }
    if (job.at <= this.now()) return { job: whole, result: await this.#run(whole) }
    this.#schedule(whole)
    this.#write()
    return { job: whole, result: undefined }
  }

  cancel(id: string): boolean {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
    const isKnown = this.#jobs.delete(id)
    if (isKnown) this.#write()
    return isKnown
  }

  close(): void {
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
  }

  #schedule(job: PrewarmJob): void {
    this.#jobs.set(job.id, job)
    const waitMs = Math.max(0, job.at - this.now())
    const timer = this.#options.runtime.timers.setTimeout(() => this.#due(job), Math.min(waitMs, longestTimerMs))
    this.#timers.set(job.id, timer)
  }

  #due(job: PrewarmJob): void {
    if (job.at > this.now()) {
      this.#schedule(job)
      return
    }
    this.cancel(job.id)
    this.#run(job).catch((error: Error) => this.#options.onFailure(job, error))
  }

  async #run(job: PrewarmJob): Promise<PrewarmResult> {
    const { writeValue } = this.#options
    // The value first: a key that is hot before it is there would be cached as missing.
    if (writeValue !== undefined) {
      await Promise.all(Object.entries(job.values).map(([key, value]) => writeValue(job.redisClusterId, key, value)))
    }
    return this.#options.warm(job)
  }

  #read(): PrewarmJob[] {
    const { file } = this.#options
    if (file === undefined) return []
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as PrewarmJob[]
    } catch {
      return []
    }
  }

  #write(): void {
    const { file } = this.#options
    if (file === undefined) return
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(`${file}.new`, JSON.stringify(this.jobs(), null, 2))
    renameSync(`${file}.new`, file)
  }
}
