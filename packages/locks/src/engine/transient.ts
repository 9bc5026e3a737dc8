import { type Clock, FirebreakError, type Timers } from '@firebreak/core'
import { replyErrorCode } from '@firebreak/redis'

/** Server errors that resolve themselves: a failover, a restart, a resharding. */
const passing = new Set(['LOADING', 'READONLY', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS'])

/** True for an error that says nothing about the request itself: the connection broke, the server is not ready. */
export function isTransient(error: unknown): boolean {
  if (error instanceof FirebreakError) return error.code === 'FB_SLOT_UNSERVED'
  if (error instanceof TypeError || error instanceof RangeError) return false
  const code = replyErrorCode(error)
  return code === undefined || passing.has(code)
}

/** How long to keep retrying. */
export interface Persistence {
  /** Not beyond this time. */
  readonly until: number
  /** Not once this is true. */
  hasEnded(): boolean
  readonly clock: Clock
  readonly timers: Timers
}

/** Repeats an idempotent call while its errors are transient, with growing pauses. */
export async function repeat<T>(call: () => Promise<T>, firstError: unknown, persistence: Persistence): Promise<T> {
  let error = firstError
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 500)) {
    const isOver = persistence.hasEnded() || persistence.clock.now() + pauseMs >= persistence.until
    if (isOver || !isTransient(error)) throw error
    await new Promise<void>((resolve) => persistence.timers.setTimeout(resolve, pauseMs))
    try {
      return await call()
    } catch (next) {
      error = next
    }
  }
}
