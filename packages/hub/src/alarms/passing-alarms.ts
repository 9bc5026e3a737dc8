import type { TimerHandle, Timers } from '@firebreak/core'
import type { Alarm, AlarmBoard } from './alarm-board.ts'

const maxShown = 1000

/** Alarms that nobody clears: each stays visible for a while after it was last raised. */
export class PassingAlarms {
  readonly #board: AlarmBoard
  readonly #timers: Timers
  readonly #shown = new Map<string, TimerHandle>()

  constructor(board: AlarmBoard, timers: Timers) {
    this.#board = board
    this.#timers = timers
  }

  /** Raises an alarm, or extends it; `toldBy` as for the board. */
  show(alarm: Alarm, forMs = 60_000, toldBy?: string): void {
    if (!this.#shown.has(alarm.id) && this.#shown.size >= maxShown) return
    this.#shown.get(alarm.id)?.cancel()
    this.#shown.set(
      alarm.id,
      this.#timers.setTimeout(() => this.end(alarm.id), forMs),
    )
    this.#board.raise(alarm, toldBy)
  }

  end(id: string): void {
    this.#shown.get(id)?.cancel()
    if (this.#shown.delete(id)) this.#board.clear(id)
  }

  close(): void {
    for (const timer of this.#shown.values()) timer.cancel()
    this.#shown.clear()
  }
}
