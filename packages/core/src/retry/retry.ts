import type { Clock } from '../time/clock.ts'
import type { RetryPolicy } from './retry-policy.ts'

/** Counts a step's tries: how long to wait for the next one, and whether there is one. */
export class Retry {
  readonly policy: RetryPolicy
  readonly #clock: Clock
  readonly #random: () => number
  #failures = 0
  #since = 0

  constructor(policy: RetryPolicy, { clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.policy = policy
    this.#clock = clock
    this.#random = random
  }

  /** Consecutive failures. */
  get failures(): number {
    return this.#failures
  }

  /** True once the tries or the time are used up. */
  get isOver(): boolean {
    if (this.#failures === 0) return false
    return this.#failures > this.policy.tries || this.#clock.now() - this.#since >= this.policy.deadlineMs
  }

  /** The summary that users see once it is over. */
  get summary(): string {
    const seconds = ((this.#clock.now() - this.#since) / 1000).toFixed(1)
    return `${this.#failures} ${this.#failures === 1 ? 'failure' : 'failures'} in a row within ${seconds} s`
  }

  /** The reason to show in a state, marked once the tries or the time are used up. */
  overdue(reason: string): { readonly reason: string; readonly isOverdue?: boolean } {
    return this.isOver ? { reason: `${reason}; ${this.summary}`, isOverdue: true } : { reason }
  }

  /**
   * Records a failure: returns the milliseconds until the next try, or undefined if there is none. `leastMs` is for
   * steps that need not be retried soon.
   */
  failed({ leastMs = 0 } = {}): number | undefined {
    if (this.#failures++ === 0) this.#since = this.#clock.now()
    const { firstMs, mostMs, atEnd } = this.policy
    if (this.isOver && atEnd !== 'alarm') return undefined
    const pauseMs = this.isOver ? mostMs : Math.min(mostMs, firstMs * 2 ** Math.min(30, this.#failures - 1))
    return Math.max(leastMs, pauseMs) * (0.5 + this.#random() / 2)
  }

  /** The step worked: the next failure counts as the first again. */
  succeeded(): void {
    this.#failures = 0
  }
}
