import type { Timers } from '@firebreak/core'
import type { Answer } from '../answer.ts'
import { LimitWaitError } from '../errors.ts'

/** How long a call of `wait` may take. */
export interface WaitOptions {
  /** Rejects at once where the turn would come later than this. @default 10000 */
  readonly maxWaitMs?: number
  /** Leaves the line when aborted, with the signal's reason. */
  readonly signal?: AbortSignal
}

/** What a line needs of its limiter. */
interface LineOptions {
  take(key: string, cost: number): Answer | Promise<Answer>
  refund(key: string, cost: number): unknown
  readonly timers: Timers
  readonly maxWaiting: number
}

interface Waiter {
  readonly cost: number
  readonly deadline: number
  readonly signal: AbortSignal | undefined
  resolve(answer: Answer): void
  reject(error: unknown): void
  isGone: boolean
}

/**
 * First come, first served, for each key: only the first in a line asks the limit, and sleeps exactly as long as the
 * limit says. A call whose turn cannot come before its deadline is refused at once, not after waiting in vain.
 *
 * Time is measured on the process' steady clock; a limiter may run on another.
 */
export class WaitingLine {
  readonly #options: LineOptions
  readonly #lines = new Map<string, Waiter[]>()
  #waiting = 0

  constructor(options: LineOptions) {
    this.#options = options
  }

  wait(key: string, cost: number, options: WaitOptions): Promise<Answer> {
    const { maxWaitMs = 10_000, signal } = options
    return new Promise<Answer>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (this.#waiting >= this.#options.maxWaiting) {
        return reject(
          new LimitWaitError(
            'FB_LIMIT_WAIT_FULL',
            `${this.#waiting} calls wait already; raise maxWaiting or shed load`,
            key,
            null,
          ),
        )
      }
      this.#waiting++
      let settle = (): void => {}
      const waiter: Waiter = {
        cost,
        deadline: performance.now() + maxWaitMs,
        signal,
        isGone: false,
        resolve: (answer) => {
          settle()
          resolve(answer)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      }
      const onAbort = () => waiter.reject(signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      settle = () => {
        settle = () => {}
        waiter.isGone = true
        this.#waiting--
        signal?.removeEventListener('abort', onAbort)
      }
      const line = this.#lines.get(key)
      if (line !== undefined) line.push(waiter)
      else {
        this.#lines.set(key, [waiter])
        void this.#serve(key)
      }
    })
  }

  /** Serves a line until it is empty. */
  async #serve(key: string): Promise<void> {
    const line = this.#lines.get(key)!
    while (line.length > 0) {
      const waiter = line[0]!
      if (!waiter.isGone) {
        try {
          const sleepMs = await this.#try(key, waiter)
          if (sleepMs > 0) {
            await this.#sleep(sleepMs, waiter.signal)
            continue
          }
        } catch (error) {
          waiter.reject(error)
        }
      }
      line.shift()
    }
    this.#lines.delete(key)
  }

  /** Asks the limit for the first in line; how long to sleep before asking again, 0 where it is served or refused. */
  async #try(key: string, waiter: Waiter): Promise<number> {
    const { cost } = waiter
    const answer = await this.#options.take(key, cost)
    const leftMs = waiter.deadline - performance.now()
    if (answer.allowed) {
      if (waiter.isGone || answer.delayMs > leftMs) {
        this.#options.refund(key, cost)
        waiter.reject(tooLong(key, answer.delayMs))
      } else if (answer.delayMs === 0) waiter.resolve(answer)
      // The next in line need not wait for this one to leave: each has its own delay.
      else this.#options.timers.setTimeout(() => waiter.resolve(answer), answer.delayMs)
      return 0
    }
    if (answer.retryAfterMs === null) {
      throw new LimitWaitError('FB_LIMIT_WAIT_NEVER', `a cost of ${cost} is never admitted by this limit`, key, null)
    }
    if (answer.retryAfterMs > leftMs) throw tooLong(key, answer.retryAfterMs)
    return Math.max(1, answer.retryAfterMs)
  }

  #sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = this.#options.timers.setTimeout(end, delayMs)
      signal?.addEventListener('abort', end, { once: true })
    })
  }
}

function tooLong(key: string, retryAfterMs: number): LimitWaitError {
  return new LimitWaitError(
    'FB_LIMIT_WAIT_TOO_LONG',
    `the turn comes in ${retryAfterMs} ms, later than maxWaitMs allows`,
    key,
    retryAfterMs,
  )
}
