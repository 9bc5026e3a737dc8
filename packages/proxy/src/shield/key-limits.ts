import type { RateLimitStrategy } from '@firebreak/core'
import { fixedWindow, gcra, type LimitSpec, LocalLimiter, slidingWindow, tokenBucket } from '@firebreak/limits'

/** The limits on hot keys, each counted in this process. */
export class KeyLimits {
  readonly #limiters = new Map<string, LocalLimiter>()

  /** The limiter that carries a strategy out; strategies with the same numbers share one, keys are apart in it. */
  of(strategy: RateLimitStrategy): LocalLimiter {
    const { algorithm, limit, windowMs } = strategy
    const id = `${algorithm} ${limit} ${windowMs}`
    let limiter = this.#limiters.get(id)
    if (limiter === undefined) {
      limiter = new LocalLimiter(specOf(strategy))
      if (this.#limiters.size >= maxLimiters) this.#limiters.clear()
      this.#limiters.set(id, limiter)
    }
    return limiter
  }
}

const maxLimiters = 256

function specOf({ algorithm, limit, windowMs }: RateLimitStrategy): LimitSpec {
  switch (algorithm) {
    case 'fixedWindow':
      return fixedWindow({ limit, windowMs })
    case 'slidingWindow':
      return slidingWindow({ limit, windowMs })
    case 'gcra':
      return gcra({ capacity: limit, rate: limit, perMs: windowMs })
    default:
      return tokenBucket({ capacity: limit, refill: limit, perMs: windowMs })
  }
}
