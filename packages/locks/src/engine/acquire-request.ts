import type { HoldRequest } from '../lease/hold.ts'

/** One request for a lock by one owner. */
export interface AcquireRequest extends HoldRequest {
  /** 0: one try. Infinity: for ever. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
  /** Ask again and again with growing pauses instead of subscribing. */
  readonly isSpinning?: boolean
}
