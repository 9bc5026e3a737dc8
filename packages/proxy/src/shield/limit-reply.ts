import type { RateLimitStrategy } from '@firebreak/core'
import type { KeyLimitedError } from '@firebreak/shield'

/** The answer to a client whose request was refused by a limit. */
export function limitReply({ limit, windowMs }: RateLimitStrategy, { retryAfterMs }: Partial<KeyLimitedError>): Buffer {
  // A client that left the queue was given no time.
  const when = retryAfterMs === null || retryAfterMs === undefined ? 'later' : `after ${Math.ceil(retryAfterMs)} ms`
  return Buffer.from(
    `-LIMITED Firebreak: this key is limited to ${limit} accesses in ${windowMs} ms; retry ${when}\r\n`,
  )
}
