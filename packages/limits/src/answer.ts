/**
 * Who gave an answer: the in-process engine; Redis; this process' memory of a denial that still holds; units leased
 * from Redis before; or, with Redis away, the policy `open` or `closed` (`local` answers as the in-process engine).
 */
export type AnswerSource = 'local' | 'redis' | 'denied-memory' | 'lease' | 'open' | 'closed'

/** What a limit says to one call. */
export interface Answer {
  readonly allowed: boolean
  /** Units that would still be admitted now, after this call. */
  readonly remaining: number
  /** The first millisecond from now at which the same call is admitted if nothing else comes: 0 when it was, null when never. */
  readonly retryAfterMs: number | null
  /** Milliseconds until the limit is wholly unused again if nothing else comes. */
  readonly resetMs: number
  /** How long an admitted call shall be held back, for limits that pace; 0 for the others. */
  readonly delayMs: number
  readonly source: AnswerSource
}

/** Calls of a limiter by outcome. */
export interface LimiterCounts {
  allowed: number
  denied: number
  /** Answered by the policy for an absent Redis. */
  unavailable: number
  /** Keys dropped because `maxKeys` was reached: each starts over. */
  evicted: number
}
