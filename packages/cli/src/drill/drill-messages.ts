/** Messages from the coordinator to a client process. */
export type DrillOrder =
  /** Read `key` this often, along with cold traffic, until told otherwise. */
  | { readonly kind: 'drive'; readonly key: string; readonly readsPerSecond: number; readonly coldPerSecond: number }
  /** Read `key` every millisecond and record which version was seen when. */
  | { readonly kind: 'watch'; readonly key: string }
  /** Stop reading and send what was recorded. */
  | { readonly kind: 'stop' }

/**
 * Messages from a client process to the coordinator. Times are milliseconds since 1970, with fractions, on one machine.
 */
export type DrillNews =
  | { readonly kind: 'ready' }
  | { readonly kind: 'delivered'; readonly at: number }
  | { readonly kind: 'effective'; readonly at: number }
  | DrillNotes

/** What a client recorded between an order and `stop`. */
export interface DrillNotes {
  readonly kind: 'notes'
  /** When each read of the hot key began. */
  readonly readsAt: readonly number[]
  /**
   * For each version seen: when the first read that returned it ended, and when the last read that returned it began.
   */
  readonly versions: readonly { readonly version: number; readonly firstSeenAt: number; readonly lastBegunAt: number }[]
  readonly errors: number
}

/** A clock that processes of one machine share. */
export function machineTime(): number {
  return performance.timeOrigin + performance.now()
}
