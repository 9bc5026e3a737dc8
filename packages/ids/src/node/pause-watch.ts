import type { Clock, Runtime, TimerHandle } from '@firebreak/core'

/**
 * Notices that the process was paused: SIGSTOP, a sleeping laptop, a migrated virtual machine, a blocked event loop.
 * What arrived before a pause says nothing about the time after it.
 */
export class PauseWatch {
  readonly #clock: Clock
  readonly #timer: TimerHandle
  #seenAt: number
  #longestMs = 0

  /** @param everyMs How often it looks; shorter pauses are not told from none. */
  constructor({ clock, timers }: Runtime, everyMs: number) {
    this.#clock = clock
    this.#seenAt = clock.now()
    this.#timer = timers.setInterval(() => this.#look(), everyMs)
  }

  /** The longest time between two checks since the last call, in milliseconds. */
  take(): number {
    this.#look()
    const longestMs = this.#longestMs
    this.#longestMs = 0
    return longestMs
  }

  stop(): void {
    this.#timer.cancel()
  }

  #look(): void {
    const nowMs = this.#clock.now()
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#seenAt)
    this.#seenAt = nowMs
  }
}
