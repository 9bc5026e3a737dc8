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
}

/** What a key's limit is made of. */
export interface KeyLimitOptions extends LimitBounds {
  readonly key: string
  readonly strategy: RateLimitStrategy
  /** Where a limit of scope `shared` is counted; without it each process counts its share. */
  readonly redis: Redis | undefined
  readonly runtime: Runtime
  /** Called for each access that it refuses. */
  readonly onRefused: () => void
}

/** The keys under which shared limits are counted begin so; they are never limited themselves. */
export const limitKeyPrefix = 'fb:limit'

/**
 * The limit on one hot key. `reject` refuses what is too much; `wait` lets it stand in a line, bounded in number and
 * time, first come first served; `stale` refuses it too, but the hooks then give the last reply that was read.
 *
 * A limit counted in Redis answers later, and while Redis cannot be asked each process counts for itself: a limit that
 * fails must not fail the application.
 */
export class KeyLimit {
  /** Accesses that were refused or answered with an old reply. */
  limited = 0
  readonly #options: KeyLimitOptions
  readonly #limiter: LocalLimiter | RedisLimiter
  #waiting = 0

  constructor(options: KeyLimitOptions) {
    const { strategy, processes, redis, runtime, maxWaiting } = options
    this.#options = options
    this.#limiter =
      strategy.scope === 'shared' && redis !== undefined
        ? new RedisLimiter(limitSpecOf(strategy), redis, {
            prefix: limitKeyPrefix,
            onUnavailable: 'local',
            runtime,
            maxWaiting,
          })
        : new LocalLimiter(limitSpecOf(strategy, processes), { runtime, maxWaiting })
  }

  /** The strategy that it carries out. */
  get strategy(): RateLimitStrategy {
    return this.#options.strategy
  }

  /** True where it carries this strategy out. */
  isFor(strategy: RateLimitStrategy): boolean {
    return this.strategy === strategy || JSON.stringify(this.strategy) === JSON.stringify(strategy)
  }

  /** True where admitted reads go through the shield, so that their replies can be given again. */
  get keepsLast(): boolean {
    return this.strategy.onLimit === 'stale'
  }

  /**
   * Asks for one access: undefined where it may go on at once, an error where it may not; a promise where that takes
   * time. A caller that cannot wait (a command in a pipeline) is refused instead of put in line, and goes on where only
   * Redis could tell: it is charged all the same. One that is gone, as `signal` tells, leaves the line.
   */
  admit(canWait: boolean, signal?: AbortSignal): undefined | KeyLimitedError | Promise<void> {
    const { key, strategy } = this.#options
    if (this.#limiter instanceof RedisLimiter) return this.#admitShared(this.#limiter, canWait, signal)
    // Those who stand in line already come first.
    const mustQueue = strategy.onLimit === 'wait' && this.#waiting > 0
    const answer = mustQueue ? this.#limiter.peek(key, 1) : this.#limiter.take(key)
    if (answer.allowed && !mustQueue) return undefined
    if (strategy.onLimit === 'wait' && canWait) return this.#wait(signal)
    return this.#refusal(answer.retryAfterMs)
  }

  #admitShared(limiter: RedisLimiter, canWait: boolean, signal: AbortSignal | undefined): undefined | Promise<void> {
    const { key, strategy } = this.#options
    if (strategy.onLimit === 'wait' && canWait) return this.#wait(signal)
    const answered = limiter.take(key)
    if (!canWait) {
      answered.catch(() => {})
      return undefined
    }
    return answered.then(({ allowed, retryAfterMs }) => {
      if (!allowed) throw this.#refusal(retryAfterMs)
    })
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const { key, maxWaitMs } = this.#options
    this.#waiting++
    try {
      await this.#limiter.wait(key, 1, { maxWaitMs, ...(signal !== undefined && { signal }) })
    } catch (error) {
      // Nobody was refused.
      if (signal?.aborted) throw error
      throw this.#refusal((error as { retryAfterMs?: number | null }).retryAfterMs ?? null)
    } finally {
      this.#waiting--
    }
  }

  #refusal(retryAfterMs: number | null): KeyLimitedError {
    this.limited++
    this.#options.onRefused()
    return new KeyLimitedError(this.#options.key, retryAfterMs)
  }
}
