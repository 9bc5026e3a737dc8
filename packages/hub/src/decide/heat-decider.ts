import type { TableEntry } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { HeatTrack } from '../heat/heat-track.ts'

/** Who moves keys between cold, warming, hot and cooling: this hub by itself, or all hubs of a board together. */
export interface HeatDecider {
  /** All tracks that are not cold. */
  active(): Iterable<HeatTrack>
  /** The rules in force; a track that was armed under another is not evaluated. */
  setRules(rules: readonly Rule[]): void
  /** Looks at a key whose heat just grew. */
  onHeat(track: HeatTrack, now: number): void
  /** A process says that the key crossed the threshold there; true where it is hot by that. */
  confirmClaim(track: HeatTrack, heat: number, now: number): boolean
  tick(now: number): void
  /** Makes a key hot before it is, and keeps it so for `holdMs` without a single access. */
  warm(track: HeatTrack, reason: string, now: number, holdMs: number): void
  /** All keys that are hot. */
  handled(): Iterable<HandledKey>
  /** Chooses again for a hot key: by what is known of its load by now, or because its strategy was given up (`why`). */
  rechoose(track: HeatTrack, now: number, why?: string): void
  /** A key that was hot before a restart; it gets `graceMs` to be seen again. */
  restore(track: HeatTrack, entry: TableEntry, now: number, graceMs: number): void
  /** The rule of an active track is another now, or is gone. */
  reconsider(track: HeatTrack, rule: Rule | undefined, now: number): void
}

/** A hot key, what is done for it, and since when. */
export interface HandledKey {
  readonly track: HeatTrack
  readonly entry: TableEntry
  readonly since: number
}

/** Those of the tracks that are hot. */
export function* handledOf(tracks: Iterable<HeatTrack>): Generator<HandledKey> {
  for (const track of tracks) {
    const { state } = track
    if (state === undefined || state.phase === 'warming') continue
    // A key that was pre-warmed is at its level for longer than it is hot: so that its hold alone counts.
    yield { track, entry: state.entry, since: Math.max(state.levelSince, state.since) }
  }
}
