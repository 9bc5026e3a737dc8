import type { RateLimitStrategy } from '@firebreak/core'
import type { KeyLimitedError } from '@firebreak/shield'

/** What a client is told whose request a limit refused. */
export function limitReply({ limit, windowMs }: RateLimitStrategy, { retryAfterMs }: Partial<KeyLimitedError>): Buffer {
  // Who has left the line was told no time.
  const when = retryAfterMs === null || retryAfterMs === undefined ? 'later' : `after ${Math.ceil(retryAfterMs)} ms`
  return Buffer.from(
    `-LIMITED Firebreak: this key is limited to ${limit} accesses in ${windowMs} ms; retry ${when}\r\n`,
  )
}
