import type { Clock } from '@firebreak/core'

/**
 * The current time at the hub. Each message carries the hub's time when it was sent, so hub time − our time on arrival
 * is the offset minus the transit time; the largest recent one is the best estimate. A hub whose clock is set back is
 * trusted once the larger samples have left the window.
 */
export class HubClock implements Clock {
  readonly #clock: Clock
  readonly #samples: number[] = []
  readonly #windowSize: number
  #offsetMs: number

  constructor(clock: Clock, offsetMs = 0, windowSize = 16) {
    this.#clock = clock
    this.#offsetMs = offsetMs
    this.#windowSize = windowSize
  }

  /** Hub time minus our own. */
  get offsetMs(): number {
    return this.#offsetMs
  }

  now(): number {
    return this.#clock.now() + this.#offsetMs
  }

  /** Records the time carried by a message of the hub. */
  heard(hubTime: number): void {
    this.#samples.push(hubTime - this.#clock.now())
    if (this.#samples.length > this.#windowSize) this.#samples.shift()
    this.#offsetMs = Math.max(...this.#samples)
  }

  /** Starts over with another hub; the last offset holds until that one was heard. */
  restart(offsetMs = this.#offsetMs): void {
    this.#samples.length = 0
    this.#offsetMs = offsetMs
  }
}
