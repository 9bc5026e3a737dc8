import type { Clock } from '@firebreak/core'

/**
 * The hub's clock, except that while a turn runs late it shows the time at which the turn was due, so that no decision
 * depends on the delay.
 */
export class DueClock implements Clock {
  readonly #clock: Clock
  /** The time of the current turn. */
  at: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.at ?? this.#clock.now()
  }
}
