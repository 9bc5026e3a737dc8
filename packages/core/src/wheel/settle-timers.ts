import type { Clock } from '../time/clock.ts'
import { TimingWheel } from './timing-wheel.ts'

/** When a key's evaluation comes due after its first report. */
export interface SettleTimersOptions {
  readonly clock: Clock
  /** Long enough that every host has reported once. @default 200 */
  readonly settleMs?: number
  /** Up to this much is added at random, so that the keys of one moment are not evaluated in one. @default 100 */
  readonly settleJitterMs?: number
  /** Gives numbers in [0, 1). @default Math.random */
  readonly random?: () => number
  /** How exact the timers are. @default a twentieth of `settleMs`, from 1 to 100 */
  readonly tickMs?: number
  /** Keys that wait at one time. @default 4194304 */
  readonly maxKeys?: number
  /** The key with this index is to be evaluated. */
  readonly onSettled: (index: number) => void
}

/**
 * One evaluation per key, `settleMs` plus a random part of `settleJitterMs` after the report that first named it; later
 * reports of a key that already waits change nothing. Keys are dense indices of a dict.
 */
export class SettleTimers {
  readonly #wheel: TimingWheel<number>
  readonly #settleMs: number
  readonly #settleJitterMs: number
  readonly #random: () => number
  /** The timer of each waiting key. */
  readonly #waiting = new Map<number, number>()
  #refused = 0

  constructor(options: SettleTimersOptions) {
    const { clock, settleMs = 200, settleJitterMs = 100, random = Math.random, maxKeys, onSettled } = options
    const { tickMs = Math.min(100, Math.max(1, settleMs / 20)) } = options
    this.#settleMs = settleMs
    this.#settleJitterMs = settleJitterMs
    this.#random = random
    this.#wheel = new TimingWheel({
      clock,
      tickMs,
      ...(maxKeys === undefined ? {} : { maxTimers: maxKeys }),
      onDue: (index) => {
        this.#waiting.delete(index)
        onSettled(index)
      },
    })
  }

  /** Keys that wait for their evaluation. */
  get size(): number {
    return this.#waiting.size
  }

  /** Keys that found all timers taken; crossings on arrival find them all the same. */
  get refused(): number {
    return this.#refused
  }

  /** A report named the key. */
  arm(index: number): void {
    if (this.#waiting.has(index)) return
    const id = this.#wheel.set(this.#settleMs + this.#random() * this.#settleJitterMs, index)
    if (id < 0) this.#refused++
    else this.#waiting.set(index, id)
  }

  /** The key was forgotten. */
  disarm(index: number): void {
    const id = this.#waiting.get(index)
    if (id === undefined) return
    this.#waiting.delete(index)
    this.#wheel.cancel(id)
  }

  /** Evaluates what is due by the clock; call it every tick or so. */
  advance(): number {
    return this.#wheel.advance()
  }

  nextDueMs(): number | undefined {
    return this.#wheel.nextDueMs()
  }
}
