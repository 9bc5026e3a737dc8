import { type Clock, steadyClock } from '@firebreak/core'
import { formatCount, formatDuration } from './format.ts'

/** The progress of something. */
export interface ProgressState {
  readonly unit: string
  readonly done: number
  /** 0 if unknown. */
  readonly total: number
}

/** One line on stderr with share, rate and time left, redrawn in place; nothing if stderr is not a terminal. */
export class ProgressBar {
  readonly #out: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #isShown: boolean
  #drawnAt = Number.NEGATIVE_INFINITY
  #isDrawn = false

  constructor(
    out: NodeJS.WritableStream & { isTTY?: boolean; columns?: number },
    options: { isShown?: boolean; clock?: Clock } = {},
  ) {
    this.#out = out
    this.#clock = options.clock ?? steadyClock
    this.#startedAt = this.#clock.now()
    this.#isShown = options.isShown ?? out.isTTY === true
  }

  update(state: ProgressState): void {
    const now = this.#clock.now()
    if (!this.#isShown || now - this.#drawnAt < 100) return
    this.#drawnAt = now
    this.#isDrawn = true
    const width = Math.max(40, (this.#out.columns ?? 80) - 1)
    this.#out.write(`\r${this.render(state).slice(0, width).padEnd(width)}`)
  }

  /** Clears the line, so that what is printed next is on its own. */
  clear(): void {
    if (!this.#isDrawn) return
    this.#out.write(`\r${' '.repeat(Math.max(40, (this.#out.columns ?? 80) - 1))}`)
    this.#out.write('\r')
    this.#isDrawn = false
  }

  render({ unit, done, total }: ProgressState): string {
    const seconds = Math.max(0.001, (this.#clock.now() - this.#startedAt) / 1000)
    const rate = done / seconds
    const speed = `${formatCount(Math.round(rate))} ${unit}/s`
    if (total <= 0) return `${formatCount(done)} ${unit}  ${speed}  ${formatDuration(seconds * 1000)}`
    const share = Math.min(1, done / total)
    const filled = Math.round(share * 20)
    const left = rate > 0 ? formatDuration(((total - Math.min(done, total)) / rate) * 1000) : '?'
    const bar = `[${'#'.repeat(filled)}${'.'.repeat(20 - filled)}]`
    return `${bar} ${(share * 100).toFixed(0).padStart(3)} %  ${formatCount(done)} of ${formatCount(total)} ${unit}  ${speed}  ${left} left`
  }
}
