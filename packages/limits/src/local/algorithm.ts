import type { Answer } from '../answer.ts'

/**
 * One algorithm over numbered slots, each the state of a key. Time and cost are whole numbers from 0 up.
 *
 * All algorithms keep one rule about state, and the scripts on Redis keep the same: state changes when a call is
 * charged, or when the clock is found further behind it than it may be (see `step-back.ts`).
 */
export interface Algorithm {
  /** Makes room for slots below `slots`; new ones are unused. */
  grow(slots: number): void
  /** Decides on a call, and charges it if it is admitted and `charges` is set. */
  take(slot: number, nowMs: number, cost: number, charges: boolean, requestId?: string): Answer
  /** Returns units, never below zero used. */
  refund(slot: number, nowMs: number, units: number, requestId?: string): void
  /** When the slot becomes equivalent to unused. */
  unusedAtMs(slot: number): number
  /** Makes a slot unused. */
  clear(slot: number): void
}

/** An admitted call's answer. */
export function admitted(remaining: number, resetMs: number, delayMs: number): Answer {
  return { allowed: true, remaining, retryAfterMs: 0, resetMs, delayMs, source: 'local' }
}

/** A denied call's answer. */
export function denied(remaining: number, retryAfterMs: number | null, resetMs: number): Answer {
  return { allowed: false, remaining, retryAfterMs, resetMs, delayMs: 0, source: 'local' }
}

/** A copy of a column with room for more. */
export function grown(column: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(length)
  larger.set(column)
  return larger
}
