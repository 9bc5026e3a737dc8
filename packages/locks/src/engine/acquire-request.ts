import type { HoldRequest } from '../lease/hold.ts'

/** One request for a lock by one owner. */
export interface AcquireRequest extends HoldRequest {
  /** 0: one attempt. Infinity: forever. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
  /** Poll with growing pauses instead of subscribing. */
  readonly isSpinning?: boolean
}
