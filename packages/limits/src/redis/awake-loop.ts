import type { Clock } from '@firebreak/core'

/** What the loop runs on. */
export interface AwakeLoopSystem {
  readonly cores: number
  readonly clock: Clock
  readonly setImmediate: (callback: () => void) => void
}

/**
 * Keeps the event loop turning while a reply is due within microseconds, instead of letting the process fall asleep.
 *
 * A sleeping process must be woken by the one that writes to it. Between two cores of a virtual machine that takes 10 to
 * 25 µs and costs both sides, as much as the decision that is waited for; and while this process sleeps and wakes, Redis
 * has run out of work and falls asleep in its turn. For a crowd on a hot key, kept awake, a round costs less processor
 * time than with the sleep in it (`npm run -s bench -- limits --only=redis-hot`).
 *
 * It is bounded: no reply is waited for longer than `maxMs`, and none at all unless the last one came within that, so
 * that a Redis which is further away, or busy, is awaited asleep. The loop turns as usual meanwhile: input, timers and
 * other callbacks are served as they come. On one core it would keep Redis itself from running, and never happens.
 */
export class AwakeLoop {
  readonly #maxMs: number
  readonly #system: AwakeLoopSystem
  #awaited = 0
  #until = 0
  #isNear = false
  #isTurning = false

  constructor(maxMs: number, system: AwakeLoopSystem) {
    this.#maxMs = system.cores > 1 ? maxMs : 0
    this.#system = system
  }

  /** A reply is awaited from `now` on, a time of the steady clock. */
  sent(now: number): void {
    this.#awaited++
    this.#until = now + this.#maxMs
    if (!this.#isNear || this.#isTurning) return
    this.#isTurning = true
    this.#system.setImmediate(this.#turn)
  }

  /** It came after `tookMs`, or failed. */
  answered(tookMs: number): void {
    this.#awaited--
    this.#isNear = tookMs < this.#maxMs
  }

  readonly #turn = (): void => {
    this.#isTurning = this.#awaited > 0 && this.#system.clock.now() < this.#until
    if (this.#isTurning) this.#system.setImmediate(this.#turn)
  }
}
