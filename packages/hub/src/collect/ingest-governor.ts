import { maxSamplingFactor, nextSamplingFactor } from '@firebreak/core/heat'
import type { Rule } from '@firebreak/core/rules'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** What the hub asks of its sensors. */
export interface SensorPace {
  readonly intervalMs: number
  readonly samplingFloor: number
}

export interface IngestGovernorOptions {
  /** How often sensors report while the hub can keep up. */
  readonly reportIntervalMs: number
  /** The longest interval that it asks for. */
  readonly maxReportIntervalMs: number
  readonly maxReportsPerSecond: number
  readonly maxEntriesPerSecond: number
}

const maxFloor = 65_536
/** Busy for more than this fraction of the time: slower. Below the other: faster again. */
const busyLoad = 0.75
const easyLoad = 0.5

/**
 * Sets the sensors' interval and sampling floor by what the hub can handle.
 *
 * The interval follows from their number (reports per second = sensors ÷ interval), and is stretched while this process
 * is busy most of the time, whatever the reason; it shrinks back slowly, so that it does not oscillate. The floor f
 * follows the incoming entries (`nextSamplingFactor`): it rises at once if there are too many, and falls by at most a
 * quarter per second if there are few. It is bounded by the lowest threshold T of any rule: f ≤ 1 + T/96 keeps a key at
 * 1.5 T from being missed. It is not a whole number: at T = 131, 2 instead of 2.36 would be a fifth more rows.
 */
export class IngestGovernor {
  readonly #options: IngestGovernorOptions
  readonly #reports = new SlidingWindow(2000)
  readonly #entries = new SlidingWindow(2000)
  #lowestThreshold = maxFloor * 96
  #stretch = 1
  #pace: SensorPace

  constructor(options: IngestGovernorOptions) {
    this.#options = options
    this.#pace = { intervalMs: options.reportIntervalMs, samplingFloor: 1 }
  }

  get pace(): SensorPace {
    return this.#pace
  }

  setRules(rules: readonly Rule[]): void {
    const thresholds = rules.flatMap(({ levels }) => levels.filter(isOfCounts).map(({ enter }) => enter))
    this.#lowestThreshold = Math.min(maxFloor * 96, ...thresholds)
  }

  count(entries: number, now: number): void {
    this.#reports.add(now, 1)
    this.#entries.add(now, entries)
  }

  rates(now: number): { readonly reportsPerSecond: number; readonly entriesPerSecond: number } {
    return { reportsPerSecond: this.#reports.sum(now) / 2, entriesPerSecond: this.#entries.sum(now) / 2 }
  }

  /** Called once a second; `load` is the fraction of it for which this process was busy. */
  adjust(sensors: number, load: number, now: number): SensorPace {
    const { reportIntervalMs, maxReportIntervalMs, maxReportsPerSecond, maxEntriesPerSecond } = this.#options
    const needed = Math.ceil((sensors * 1000) / maxReportsPerSecond)
    const unhurriedMs = Math.max(reportIntervalMs, needed)
    if (load > busyLoad) this.#stretch = Math.min(this.#stretch * 1.5, maxReportIntervalMs / unhurriedMs)
    else if (load < easyLoad) this.#stretch *= 0.95
    this.#stretch = Math.max(1, this.#stretch)
    const intervalMs = Math.min(maxReportIntervalMs, Math.round(unhurriedMs * this.#stretch))
    const factor = this.#pace.samplingFloor
    const rows = this.rates(now).entriesPerSecond
    const lowestThreshold = this.#lowestThreshold
    const next = nextSamplingFactor({ factor, rows, maxRows: maxEntriesPerSecond, lowestThreshold })
    const rounded = Math.ceil(Math.max(next, factor * 0.75) * 100) / 100
    const samplingFloor = Math.min(rounded, maxSamplingFactor(lowestThreshold))
    this.#pace = { intervalMs, samplingFloor }
    return this.#pace
  }
}

function isOfCounts({ measure, enter }: Rule['levels'][number]): boolean {
  return measure !== 'bytes' && enter < Number.MAX_SAFE_INTEGER
}
