/** With fewer accesses than this in an interval, the next report may wait. */
const quietCount = 5
const longestFactor = 5
const shortestGapMs = 10

/**
 * When to report: every `intervalMs`, up to five times as rarely while next to nothing is counted, and at once (but not
 * more often than every 10 ms) when one key is growing fast.
 */
export class Cadence {
  intervalMs = 100
  #lastAt: number
  #isBursting = false

  constructor(now: number) {
    this.#lastAt = now
  }

  /** One key is growing fast: the next `isDue` comes sooner. */
  burst(): void {
    this.#isBursting = true
  }

  /** How long until a burst's report is due. */
  burstDelayMs(now: number): number {
    return Math.max(0, shortestGapMs - (now - this.#lastAt))
  }

  isDue(now: number, countSoFar: number): boolean {
    const passed = now - this.#lastAt
    if (this.#isBursting) return passed >= shortestGapMs
    // A timer of the interval may fire a little early.
    if (passed < this.intervalMs * 0.9) return false
    return countSoFar >= quietCount || (countSoFar > 0 && passed >= this.intervalMs * longestFactor)
  }

  reported(now: number): void {
    this.#lastAt = now
    this.#isBursting = false
  }
}
