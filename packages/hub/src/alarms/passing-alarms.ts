import type { TimerHandle, Timers } from '@firebreak/core'
import type { Alarm, AlarmBoard } from './alarm-board.ts'

const maxShown = 1000

/** Alarms of which nobody says when they end: each is left to be seen for a while after it was last told. */
export class PassingAlarms {
  readonly #board: AlarmBoard
  readonly #timers: Timers
  readonly #shown = new Map<string, TimerHandle>()

  constructor(board: AlarmBoard, timers: Timers) {
    this.#board = board
    this.#timers = timers
  }

  /** Raises an alarm, or leaves it for longer; `toldBy` as the board has it. */
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
