import type { Timers } from '@firebreak/core'

/**
 * Bursty work, done in order, one piece per turn of the event loop: the first at once. Several frames of a hub may
 * arrive in one read of its socket, and the application must not wait for all of them.
 */
export class TurnQueue {
  readonly #timers: Timers
  readonly #waiting: (() => void)[] = []
  #isTurnTaken = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Number of waiting pieces. */
  get length(): number {
    return this.#waiting.length
  }

  add(work: () => void): void {
    if (this.#isTurnTaken) this.#waiting.push(work)
    else this.#takeTurn(work)
  }

  /** Discards what is waiting. */
  clear(): void {
    this.#waiting.length = 0
  }

  #takeTurn(work: () => void): void {
    this.#isTurnTaken = true
    // Scheduled before the work: if that fails, the rest is still done.
    this.#timers.setImmediate(() => this.#endTurn())
    work()
  }

  #endTurn(): void {
    this.#isTurnTaken = false
    const next = this.#waiting.shift()
    if (next !== undefined) this.#takeTurn(next)
  }
}
