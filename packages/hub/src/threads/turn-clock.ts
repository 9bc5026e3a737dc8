import type { Clock } from '@firebreak/core'

/** The hub's clock, but while a turn runs late the time at which it was due: so that a decision does not depend on the delay. */
export class TurnClock implements Clock {
  readonly #clock: Clock
  #at: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#at ?? this.#clock.now()
  }

  /** Runs something as if it were `at`. */
  runAt(at: number, run: () => void): void {
    const before = this.#at
    this.#at = at
    try {
      run()
    } finally {
      this.#at = before
    }
  }
}
