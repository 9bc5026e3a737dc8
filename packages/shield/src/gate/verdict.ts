import type { RateLimitStrategy } from '@firebreak/core'
import type { CachedReply } from '../cache/cached-reply.ts'
import type { IsOurs } from '../copies/visible-key.ts'
import type { KeyLimitedError } from '../errors.ts'

/**
 * What to do with a command:
 *
 * | verdict   | the adapter                                                                                       |
 * | --------- | ------------------------------------------------------------------------------------------------- |
 * | `pass`    | sends it as it is                                                                                 |
 * | `answer`  | answers it with this reply                                                                        |
 * | `loading` | waits: the handler that the request gave (`whenLoaded`) gets the reply                             |
 * | `combined` | waits: the part that the request gave (`partOf`) gets the reply, or is sent by itself               |
 * | `hold`    | waits for the promise and asks again, with its outcome as the request's `turn`                     |
 * | `refuse`  | answers it with this error                                                                        |
 * | `guarded` | sends it, and calls `end` once it is answered or lost, before the application learns of the answer |
 * | `rewrite` | sends it, and removes our own names from the reply                                                |
 */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'combined' }
  | {
      readonly kind: 'answer'
      readonly reply: CachedReply
      /** True if a limit refused the command, and this is the last reply to one like it. */
      readonly isStale: boolean
    }
  | { readonly kind: 'hold'; readonly until: Promise<unknown>; readonly strategy: RateLimitStrategy }
  | { readonly kind: 'refuse'; readonly error: KeyLimitedError; readonly strategy: RateLimitStrategy }
  | { readonly kind: 'guarded'; readonly end: End }
  | { readonly kind: 'rewrite'; readonly isOurs: IsOurs }

/**
 * Called with the answer to the guarded command, or the error that it failed with; without arguments if it was lost.
 */
export type End = (reply?: unknown) => void

export const pass: Verdict = { kind: 'pass' }
export const loading: Verdict = { kind: 'loading' }
export const combined: Verdict = { kind: 'combined' }
