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
      /** Not cold before this, whatever its heat: it was pre-warmed, or hot before a restart. */
      readonly heldUntil?: number
      /** The table's entry; in shadow mode, what it would be. */
      readonly entry: TableEntry
      /** Heat per second when it became hot, to compare before and after. */
      readonly ratePerSecondBefore: number
    }

/** A key held because of pre-warming has no load to judge by: nothing is undone for lack of it. */
export function isHeldFromObserve(
  { heldUntil = 0 }: Exclude<HotState, { phase: 'warming' }>,
  next: Strategy,
  now: number,
): boolean {
  return now < heldUntil && next.strategy === 'Observe'
}
