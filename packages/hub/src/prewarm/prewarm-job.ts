/** Keys that should be hot before anyone reads them. */
export interface PrewarmJob {
  readonly id: string
  readonly redisClusterId: string
  readonly keys: readonly string[]
  /** Services that get them; empty: all connected at that time. */
  readonly services: readonly string[]
  /** When, wall time in milliseconds. */
  readonly at: number
  /** How long they stay hot without being read. */
  readonly forMs: number
  /** Values to put into Redis first, by key. */
  readonly values: Readonly<Record<string, string>>
  readonly who: string
  /** Cron and time zone for a recurring job, such as `58 9 * * fri in Asia/Shanghai`. @default once */
  readonly schedule?: string
}

/** How a job ended. */
export interface PrewarmResult {
  readonly warmed: number
  /** Keys that no rule matches: nothing is done for them. */
  readonly unmatched: readonly string[]
}

/** Where pending jobs are kept. */
export interface PrewarmJobs {
  /** False if `maxJobs` are already kept. */
  saveJob(job: PrewarmJob): Promise<boolean>
  /** The next first. */
  jobs(): Promise<readonly PrewarmJob[]>
  /** Takes the jobs due by `now`; a job is due again after `leaseMs` unless it is deleted before. */
  takeJobs(now: number, leaseMs: number): Promise<readonly PrewarmJob[]>
  /**
   * Ends one run of a job atomically: deletes it, or postpones it to `next`, the same job at a later time. False if it
   * is already gone: a job cancelled while it ran does not recur.
   */
  finishJob(id: string, next?: PrewarmJob): Promise<boolean>
  /** False if there is no such job. */
  deleteJob(id: string): Promise<boolean>
}
