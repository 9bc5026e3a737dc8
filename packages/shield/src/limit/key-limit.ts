import type { RateLimitStrategy, Runtime } from '@firebreak/core'
import { LocalLimiter, RedisLimiter } from '@firebreak/limits'
import type { Redis } from '@firebreak/redis'
import { KeyLimitedError } from '../errors.ts'
import { limitSpecOf } from './limit-spec.ts'

/** The bounds of limits, the same for all keys. */
export interface LimitBounds {
  /** Processes that share a limit of scope `process`. */
  readonly processes: number
  /** Accesses of a key that may wait for their turn. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** How long Redis may take for a limit with a shared scope. */
  readonly deadlineMs: number
}

/** What a key's limit is built from. */
export interface KeyLimitOptions extends LimitBounds {
  readonly key: string
  readonly serviceId: string
  readonly strategy: RateLimitStrategy
  /** Where a limit of scope `shared` is counted; without it each process counts its share. */
  readonly redis: Redis | undefined
  readonly runtime: Runtime
  /** Called for each access that it refuses. */
  readonly onRefused: () => void
}

/** Prefix of the keys that count shared limits; they are never limited themselves. */
export const limitKeyPrefix = 'fb:limit'

/**
 * The limit on one hot key. `reject` refuses whatever exceeds it; `wait` queues it, bounded in number and time, first
 * come first served; `stale` refuses it too, but the hooks then return the last reply that was read.
 *
 * A limit counted in Redis answers later, and while Redis is unreachable each process counts for itself: a failing
 * limit must not fail the application.
 */
export class KeyLimit {
  /** Accesses that were refused or answered with an old reply. */
  limited = 0
  readonly #options: KeyLimitOptions
  readonly #limiter: LocalLimiter | RedisLimiter
  /** Length of each queue. */
  readonly #waiting = new Map<string, number>()
  /** Ends the wait of each access that waits, in the order in which they came. */
  readonly #held = new Set<() => void>()

  constructor(options: KeyLimitOptions) {
    const { strategy, processes, redis, runtime, maxWaiting, deadlineMs } = options
    this.#options = options
    this.#limiter =
      strategy.scope.startsWith('shared') && redis !== undefined
        ? new RedisLimiter(limitSpecOf(strategy), redis, {
            prefix: limitKeyPrefix,
            onUnavailable: 'local',
            runtime,
            maxWaiting,
            deadlineMs,
          })
        : new LocalLimiter(limitSpecOf(strategy, processes), { runtime, maxWaiting })
  }

  /** The strategy that it enforces. */
  get strategy(): RateLimitStrategy {
    return this.#options.strategy
  }

  /** True if it enforces this strategy. */
  isFor(strategy: RateLimitStrategy): boolean {
    return this.strategy === strategy || JSON.stringify(this.strategy) === JSON.stringify(strategy)
  }

  /** True if admitted reads go through the shield, so that their replies can be returned again. */
  get keepsLast(): boolean {
    return this.strategy.onLimit === 'stale'
  }

  /**
   * Requests one access: undefined if it may proceed at once, an error if it may not; a promise if that takes time. A
   * caller that cannot wait (a pipelined command) is refused instead of queued, and proceeds if only Redis could tell:
   * it is charged all the same. A caller that has gone, according to `signal`, leaves the queue. `caller`: who asks, if
   * known.
   */
  admit(canWait: boolean, signal?: AbortSignal, caller?: () => string): undefined | KeyLimitedError | Promise<void> {
    const { strategy } = this.#options
    const id = this.#idOf(caller)
    if (this.#limiter instanceof RedisLimiter) return this.#admitShared(this.#limiter, id, canWait, signal)
    // Those already in the queue come first.
    const mustQueue = strategy.onLimit === 'wait' && this.#waiting.has(id)
    const answer = mustQueue ? this.#limiter.peek(id, 1) : this.#limiter.take(id)
    if (answer.allowed && !mustQueue) return answer.delayMs > 0 && canWait ? this.#delay(answer.delayMs) : undefined
    if (strategy.onLimit === 'wait' && canWait) return this.#wait(id, signal)
    return this.#refusal(answer.retryAfterMs)
  }

  /** Identifies the counter that an access belongs to. */
  #idOf(caller: (() => string) | undefined): string {
    const { key, serviceId, strategy } = this.#options
    switch (strategy.scope) {
      case 'shared-service':
        return `${key}\u0000service ${serviceId}`
      case 'process-caller':
      case 'shared-caller':
        return caller === undefined ? key : `${key}\u0000caller ${caller()}`
      default:
        return key
    }
  }

  /** Everybody who waits may proceed: the limit no longer applies, or the kill switch was turned on. */
  letGo(): void {
    for (const proceed of [...this.#held]) proceed()
  }

  /** For limits that pace: holds an admitted access back for this long. */
  #delay(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const proceed = () => {
        timer.cancel()
        this.#held.delete(proceed)
        resolve()
      }
      const timer = this.#options.runtime.timers.setTimeout(proceed, delayMs)
      this.#held.add(proceed)
    })
  }

  #admitShared(
    limiter: RedisLimiter,
    id: string,
    canWait: boolean,
    signal: AbortSignal | undefined,
  ): undefined | Promise<void> {
    const { strategy } = this.#options
    if (strategy.onLimit === 'wait' && canWait) return this.#wait(id, signal)
    const answered = limiter.take(id)
    if (!canWait) {
      answered.catch(() => {})
      return undefined
    }
    return answered.then(({ allowed, retryAfterMs, delayMs }) => {
      if (!allowed) throw this.#refusal(retryAfterMs)
      if (delayMs > 0) return this.#delay(delayMs)
    })
  }

  async #wait(id: string, signal: AbortSignal | undefined): Promise<void> {
    const { maxWaitMs } = this.#options
    const letGo = new AbortController()
    const proceed = () => letGo.abort()
    const ends = signal === undefined ? letGo.signal : AbortSignal.any([letGo.signal, signal])
    this.#held.add(proceed)
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1)
    try {
      await this.#limiter.wait(id, 1, { maxWaitMs, signal: ends })
    } catch (error) {
      // Nobody was refused.
      if (signal?.aborted) throw error
      if (letGo.signal.aborted) return
      throw this.#refusal((error as { retryAfterMs?: number | null }).retryAfterMs ?? null)
    } finally {
      this.#held.delete(proceed)
      const left = this.#waiting.get(id)! - 1
      if (left === 0) this.#waiting.delete(id)
      else this.#waiting.set(id, left)
    }
  }

  #refusal(retryAfterMs: number | null): KeyLimitedError {
    this.limited++
    this.#options.onRefused()
    return new KeyLimitedError(this.#options.key, retryAfterMs)
  }
}
