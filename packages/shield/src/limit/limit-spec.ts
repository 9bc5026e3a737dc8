import type { RateLimitStrategy } from '@firebreak/core'
import { fixedWindow, gcra, type LimitSpec, slidingWindow, tokenBucket } from '@firebreak/limits'

/** The limit that a strategy names, or one process' share of it. */
export function limitSpecOf({ algorithm, limit: whole, windowMs }: RateLimitStrategy, processes = 1): LimitSpec {
  // A share below one access would shut the key.
  const limit = Math.max(1, Math.floor(whole / processes))
  switch (algorithm) {
    case 'fixedWindow':
      return fixedWindow({ limit, windowMs })
    case 'slidingWindow':
      return slidingWindow({ limit, windowMs })
    case 'gcra':
      return gcra({ capacity: limit, rate: limit, perMs: windowMs })
    case 'tokenBucket':
      return tokenBucket({ capacity: limit, refill: limit, perMs: windowMs })
  }
}
