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
  /** Cron and time zone, as in `58 9 * * fri in Asia/Shanghai`: it comes again. @default once */
  readonly schedule?: string
}

/** How a job ended. */
export interface PrewarmResult {
  readonly warmed: number
  /** Keys that no rule matches: nothing would ever be done for them. */
  readonly unmatched: readonly string[]
}

/** Where jobs to come are kept. */
export interface PrewarmJobs {
  /** False where `maxJobs` are kept already. */
  saveJob(job: PrewarmJob): Promise<boolean>
  /** The next first. */
  jobs(): Promise<readonly PrewarmJob[]>
  /** Takes what is due by `now`; it is due again after `leaseMs`, unless it is deleted before. */
  takeJobs(now: number, leaseMs: number): Promise<readonly PrewarmJob[]>
  /**
   * Ends a turn of a job in one step: takes it away, or puts it off to `next`, the same job at a later time. False where it is gone
   * already: one that was cancelled while it ran does not come again.
   */
  finishJob(id: string, next?: PrewarmJob): Promise<boolean>
  /** False where there is no such job. */
  deleteJob(id: string): Promise<boolean>
}
