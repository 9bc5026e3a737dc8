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

/** Repeats an idempotent call over transient errors, with growing pauses, while `until` has not come. */
export async function persist<T>(
  call: () => Promise<T>,
  until: () => number,
  clock: Clock,
  timers: Timers,
): Promise<T> {
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 500)) {
    try {
      return await call()
    } catch (error) {
      if (!isTransient(error) || clock.now() + pauseMs >= until()) throw error
    }
    await new Promise<void>((resolve) => timers.setTimeout(resolve, pauseMs))
  }
}
