import type { Timers } from '@firebreak/core'

/** Work in steps: the code after a `yield` runs in a later turn. */
export type Steps<Result = void> = Generator<undefined, Result>

/** Entries of a table that one step handles. */
export const entriesPerStep = 512

/** Runs all steps at once. */
export function allAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value as Result
  }
}

/**
 * Bursty work, done in order, one piece per turn of the event loop: the first at once. Several frames of a hub may
 * arrive in one read of its socket, and the application must not wait for all of them, nor for all of a large one.
 */
export class TurnQueue {
  readonly #timers: Timers
  readonly #waiting: (() => void)[] = []
  #isTurnTaken = false
  /** The rest of the current piece. */
  #steps: Steps | undefined

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

  /** Adds a piece that takes several turns; those behind it wait for its last step. */
  addSteps(begin: () => Steps): void {
    this.add(() => this.#go(begin()))
  }

  /** Discards what is waiting; the current piece is finished. */
  clear(): void {
    this.#waiting.length = 0
  }

  /** Discards everything. */
  stop(): void {
    this.clear()
    this.#steps = undefined
  }

  #takeTurn(work: () => void): void {
    this.#isTurnTaken = true
    // Scheduled before the work: if that fails, the rest is still done.
    this.#timers.setImmediate(() => this.#endTurn())
    work()
  }

  #endTurn(): void {
    this.#isTurnTaken = false
    const steps = this.#steps
    if (steps !== undefined) {
      this.#takeTurn(() => this.#go(steps))
      return
    }
    const next = this.#waiting.shift()
    if (next !== undefined) this.#takeTurn(next)
  }

  #go(steps: Steps): void {
    // A piece that fails is dropped.
    this.#steps = undefined
    if (steps.next().done !== true) this.#steps = steps
  }
}
