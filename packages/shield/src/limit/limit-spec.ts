import type { RateLimitStrategy } from '@firebreak/core'
import {
  calendarWindow,
  fixedWindow,
  gcra,
  type LimitSpec,
  leakyBucket,
  leakyQueue,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@firebreak/limits'

/** The limit that a strategy defines, or one process' share of it. */
export function limitSpecOf(strategy: RateLimitStrategy, processes = 1): LimitSpec {
  const { algorithm, unit = 'day', timeZone = 'UTC' } = strategy
  // A share below one access would block the key.
  const share = (whole: number) => Math.max(1, Math.floor(whole / processes))
  const limit = share(strategy.limit)
  const capacity = share(strategy.burst ?? strategy.limit)
  const windowMs = Math.max(1, Math.round(strategy.windowMs))
  switch (algorithm) {
    case 'fixedWindow':
      return fixedWindow({ limit, windowMs })
    case 'slidingWindow':
      return slidingWindow({ limit, windowMs })
    case 'slidingCounter':
      return slidingCounter({ limit, windowMs })
    case 'slidingLog':
      return slidingLog({ limit, windowMs })
    case 'leakyBucket':
      return leakyBucket({ capacity, leak: limit, perMs: windowMs })
    case 'leakyQueue':
      // In whole milliseconds, rounded up to the slower rate.
      return leakyQueue({ intervalMs: Math.ceil(windowMs / limit), queue: capacity })
    case 'gcra':
      return gcra({ capacity, rate: limit, perMs: windowMs })
    case 'tokenBucket':
      return tokenBucket({ capacity, refill: limit, perMs: windowMs })
    case 'calendarWindow':
      return calendarWindow({ limit, unit, timeZone })
  }
}
