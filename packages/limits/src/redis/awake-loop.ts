import type { Clock } from '@firebreak/core'

/** What the loop needs. */
export interface AwakeLoopSystem {
  readonly cores: number
  readonly clock: Clock
  readonly setImmediate: (callback: () => void) => void
}

/**
 * Keeps the event loop spinning while a reply is due within microseconds, instead of letting the process sleep.
 *
 * A sleeping process must be woken by the one that writes to it. Between two cores of a virtual machine that takes 10
 * to 25 µs of both sides' time, as much as the decision itself; and while this process sleeps and wakes, Redis runs out
 * of work and falls asleep too. For a crowd on a hot key, kept awake, a round costs less processor time than with the
 * sleep in it (`npm run -s bench -- limits --only=redis-hot`).
 *
 * It is bounded: it spins for at most `maxMs`, and only if the last reply came within that, so the process sleeps while
 * waiting for a distant or busy Redis. The loop runs as usual meanwhile: input, timers and other callbacks are served
 * as they come. On a single core it would keep Redis itself from running, so it is disabled there.
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

  /** A reply is awaited since `now`, a time of the steady clock. */
  sent(now: number): void {
    this.#awaited++
    this.#until = now + this.#maxMs
    if (!this.#isNear || this.#isTurning) return
    this.#isTurning = true
    this.#system.setImmediate(this.#turn)
  }

  /** It arrived after `tookMs`, or failed. */
  answered(tookMs: number): void {
    this.#awaited--
    this.#isNear = tookMs < this.#maxMs
  }

  readonly #turn = (): void => {
    this.#isTurning = this.#awaited > 0 && this.#system.clock.now() < this.#until
    if (this.#isTurning) this.#system.setImmediate(this.#turn)
  }
}
