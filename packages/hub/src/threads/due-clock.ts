import type { Clock } from '@firebreak/core'

/** The hub's clock, but while a turn runs late the time at which it was due: so that no decision depends on the delay. */
export class DueClock implements Clock {
  readonly #clock: Clock
  /** The time of the turn that runs. */
  at: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.at ?? this.#clock.now()
  }
}
