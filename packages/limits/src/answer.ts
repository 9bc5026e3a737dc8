/**
 * Where an answer came from: the in-process engine; Redis; this process' memory of a denial still in force; units
 * leased from Redis; or, while Redis is unreachable, the policy `open` or `closed` (`local` answers like the in-process
 * engine).
 */
export type AnswerSource = 'local' | 'redis' | 'denied-memory' | 'lease' | 'open' | 'closed'

/** A limit's answer to one call. */
export interface Answer {
  readonly allowed: boolean
  /** Units that would still be admitted now, after this call. */
  readonly remaining: number
  /**
   * Milliseconds until the same call would be admitted if nothing else arrives: 0 if it was admitted, null if never.
   */
  readonly retryAfterMs: number | null
  /** Milliseconds until the limit is fully unused again if nothing else arrives. */
  readonly resetMs: number
  /** How long an admitted call should be held back, for limits that pace; 0 for others. */
  readonly delayMs: number
  readonly source: AnswerSource
}

/** Calls of a limiter by outcome. */
export interface LimiterCounts {
  allowed: number
  denied: number
  /** Answered by the policy for an unreachable Redis. */
  unavailable: number
  /** Keys dropped because `maxKeys` was reached: each starts over. */
  evicted: number
}
