import type { Trace } from '../traces/trace.ts'
import type { ExactHeats } from './exact-heats.ts'

/** How accurately hot keys were found. */
export interface DetectionVerdict {
  /** Keys per window that were truly at 1.5 × the threshold or more, summed over the windows; and those found. */
  readonly wanted: number
  readonly found: number
  readonly recall: number
  /** Keys that became hot though they were never near it at 0.67 × the threshold. */
  readonly falseAlarms: number
  /** Keys that were hot at the end of a slice, on average. */
  readonly meanHotKeys: number
}

/** Compares what a detector reports at the end of each slice with the truth. */
export class DetectionJudge {
  readonly #idOfKey: ReadonlyMap<string, number>
  readonly #truth: ExactHeats
  readonly #threshold: number
  #wanted = 0
  #found = 0
  #falseAlarms = 0
  #hotSum = 0
  #slices = 0
  #hotBefore = new Set<number>()

  constructor(trace: Trace, truth: ExactHeats, threshold: number) {
    this.#idOfKey = new Map(trace.keys.map((key, id) => [key, id]))
    this.#truth = truth
    this.#threshold = threshold
  }

  /** The end of a slice: what is hot, and what became so since the last. A window is judged an interval after its end. */
  see(slice: number, hot: Iterable<string>, alarms: Iterable<string>): void {
    const hotNow = new Set([...hot].map((key) => this.#idOfKey.get(key)!))
    this.#slices++
    this.#hotSum += hotNow.size
    for (const [id, heat] of this.#truth[slice - 1] ?? []) {
      if (heat < 1.5 * this.#threshold) continue
      this.#wanted++
      if (this.#hotBefore.has(id) || hotNow.has(id)) this.#found++
    }
    this.#hotBefore = hotNow
    for (const key of alarms) {
      const id = this.#idOfKey.get(key)!
      const near = [-2, -1, 0, 1].map((step) => this.#truth[slice + step]?.get(id) ?? 0)
      if (Math.max(...near) < 0.67 * this.#threshold) this.#falseAlarms++
    }
  }

  verdict(): DetectionVerdict {
    return {
      wanted: this.#wanted,
      found: this.#found,
      recall: this.#wanted === 0 ? 1 : this.#found / this.#wanted,
      falseAlarms: this.#falseAlarms,
      meanHotKeys: this.#hotSum / this.#slices,
    }
  }
}
