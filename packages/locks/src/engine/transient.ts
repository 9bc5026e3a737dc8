import type { Clock, Timers } from '@firebreak/core'
import { replyErrorCode } from '@firebreak/redis'

/** Server errors that pass by themselves: a failover, a restart, a resharding. */
const passing = new Set(['LOADING', 'READONLY', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS'])

/** True for an error that says nothing about the request itself: the connection broke, the server is not ready. */
export function isTransient(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return false
  const code = replyErrorCode(error)
  return code === undefined || passing.has(code)
}

/** How long to persist. */
export interface Persistence {
  /** Not beyond this time. */
  readonly until: number
  /** Not once this is true. */
  hasEnded(): boolean
  readonly clock: Clock
  readonly timers: Timers
}

/** Repeats an idempotent call over transient errors, with growing pauses. */
export async function persist<T>(call: () => Promise<T>, persistence: Persistence): Promise<T> {
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 500)) {
    try {
      return await call()
    } catch (error) {
      const isOver = persistence.hasEnded() || persistence.clock.now() + pauseMs >= persistence.until
      if (isOver || !isTransient(error)) throw error
    }
    await new Promise<void>((resolve) => persistence.timers.setTimeout(resolve, pauseMs))
  }
}
