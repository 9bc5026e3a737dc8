import type { Strategy, TableEntry } from '@firebreak/core'

/**
 * A key's state; a cold key has none.
 *
 *     cold ──heat ≥ exit──► warming ──heat ≥ enter──► hot ──heat < exit──► cooling ──held long enough──► cold
 *       ◄────heat < exit────┘                          ◄────heat ≥ exit────┘
 */
export type HotState =
  | { readonly phase: 'warming'; readonly since: number }
  | {
      readonly phase: 'hot' | 'cooling'
      /** When the key became hot. */
      readonly since: number
      /** The index of the level it is at, and since when. */
      readonly level: number
      readonly levelSince: number
      /** Not cold before this, whatever its heat: it was pre-warmed, or was hot before a restart. */
      readonly heldUntil?: number
      /** What the table says; in shadow mode, what it would say. */
      readonly entry: TableEntry
      /** Heat a second when it became hot, for the comparison of before and after. */
      readonly ratePerSecondBefore: number
    }

/** A key that is held, because it was pre-warmed, has no load to be judged by: for want of it nothing is undone. */
export function isHeldFromObserve(
  { heldUntil = 0 }: Exclude<HotState, { phase: 'warming' }>,
  next: Strategy,
  now: number,
): boolean {
  return now < heldUntil && next.strategy === 'Observe'
}
