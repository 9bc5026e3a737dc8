import { HeatWindow, Ingest, isHandled } from '@firebreak/core'
import type { DetectionRule, Detector } from './detector.ts'

/** Core's window alone, without a hub around it. */
export class WindowDetector implements Detector {
  readonly stepMs: number
  readonly #window: HeatWindow
  readonly #ingest: Ingest
  readonly #alarms: string[] = []

  constructor({ threshold, exit, windowMs, minHoldMs, intervalMs }: DetectionRule) {
    this.stepMs = intervalMs
    const thresholds = { levels: [{ enter: threshold, exit }], minHoldMs }
    this.#window = new HeatWindow({
      rules: { rules: [{ windowMs, thresholds }], match: () => 0 },
      startMs: 0,
      slices: windowMs / intervalMs,
      onChange: ({ index, before, after }) => {
        if (after.phase === 'hot' && !isHandled(before)) this.#alarms.push(this.#window.keyOf(index))
      },
    })
    this.#ingest = new Ingest({ makeWindow: () => this.#window })
  }

  async take(report: Uint8Array, _host: number, atMs: number): Promise<void> {
    this.#ingest.take(report, atMs)
  }

  /** At the time of the last report: at the end of an interval the next slice begins. */
  async moveTo(): Promise<void> {
    this.#window.evaluate()
  }

  hot(): ReadonlySet<string> {
    const handled = [...this.#window.candidates()].filter((index) => isHandled(this.#window.stateOf(index)))
    return new Set(handled.map((index) => this.#window.keyOf(index)))
  }

  takeAlarms(): readonly string[] {
    return this.#alarms.splice(0)
  }

  async close(): Promise<void> {}
}
