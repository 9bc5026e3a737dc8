import type { PendingReport } from './pending-report.ts'

/**
 * Reports waiting for a hub. Deliberately lossy: the queue is bounded in reports and entries, the oldest is dropped
 * first, and drops are counted.
 */
export class ReportQueue {
  readonly #maxReports: number
  readonly #maxEntries: number
  readonly #reports: PendingReport[] = []
  #entries = 0
  #pushed = 0
  #dropped = 0

  constructor(maxReports: number, maxEntries: number) {
    this.#maxReports = maxReports
    this.#maxEntries = maxEntries
  }

  get length(): number {
    return this.#reports.length
  }

  /** Number of reports dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Number of reports taken out for sending so far. */
  get taken(): number {
    return this.#pushed - this.#dropped - this.#reports.length
  }

  push(report: PendingReport): void {
    this.#pushed++
    this.#reports.push(report)
    this.#entries += entryCount(report)
    while (this.#reports.length > this.#maxReports || (this.#entries > this.#maxEntries && this.#reports.length > 1)) {
      this.shift()
      this.#dropped++
    }
  }

  peek(): PendingReport | undefined {
    return this.#reports[0]
  }

  shift(): PendingReport | undefined {
    const report = this.#reports.shift()
    if (report !== undefined) this.#entries -= entryCount(report)
    return report
  }
}

function entryCount(report: PendingReport): number {
  return report.sections.reduce((sum, section) => sum + section.entryCount, 0)
}
