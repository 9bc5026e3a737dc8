import type { Clock } from '@firebreak/core'
import type { Answer } from '../answer.ts'

interface Denial {
  readonly cost: number
  readonly until: number
  readonly resetAt: number
  readonly remaining: number
}

/**
 * Denials still in force: until `retryAfterMs` has passed, the same call would be denied again, whoever makes it, so
 * Redis need not be asked. Time is counted from when the call was sent, so it never lasts longer than Redis said.
 *
 * What can end a denial early (a refund, a reset) clears it in this process at once; if it happens in another process,
 * the denial still runs out here.
 */
export class DeniedMemory {
  readonly #denials = new Map<string, Denial>()
  readonly #maxKeys: number
  readonly #clock: Clock

  constructor(maxKeys: number, clock: Clock) {
    this.#maxKeys = maxKeys
    this.#clock = clock
  }

  remember(key: string, cost: number, sentAt: number, answer: Answer): void {
    if (answer.allowed || answer.retryAfterMs === null || answer.retryAfterMs <= 1) return
    if (this.#denials.size >= this.#maxKeys && !this.#denials.has(key)) {
      for (const oldest of this.#denials.keys()) {
        this.#denials.delete(oldest)
        break
      }
    }
    this.#denials.set(key, {
      cost,
      until: sentAt + answer.retryAfterMs,
      resetAt: sentAt + answer.resetMs,
      remaining: answer.remaining,
    })
  }

  /** The answer to a call that is known to be denied; undefined if Redis must be asked. */
  answer(key: string, cost: number): Answer | undefined {
    if (this.#denials.size === 0) return undefined
    const denial = this.#denials.get(key)
    if (denial === undefined || denial.cost !== cost) return undefined
    const now = this.#clock.now()
    if (denial.until <= now) {
      this.#denials.delete(key)
      return undefined
    }
    return {
      allowed: false,
      remaining: denial.remaining,
      retryAfterMs: Math.ceil(denial.until - now),
      resetMs: Math.ceil(denial.resetAt - now),
      delayMs: 0,
      source: 'denied-memory',
    }
  }

  forget(key: string): void {
    this.#denials.delete(key)
  }
}
