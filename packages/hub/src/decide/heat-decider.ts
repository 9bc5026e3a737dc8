import type { TableEntry } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { HeatTrack } from '../heat/heat-track.ts'

/** Moves keys between cold, warming, hot and cooling: this hub alone, or all hubs of a board together. */
export interface HeatDecider {
  /** All tracks that are not cold. */
  active(): Iterable<HeatTrack>
  /** The rules in force; a track armed under another rule is not evaluated. */
  setRules(rules: readonly Rule[]): void
  /** Checks a key whose heat just grew. */
  onHeat(track: HeatTrack, now: number): void
  /** A process reports that the key crossed the threshold there; true if that makes it hot. */
  confirmClaim(track: HeatTrack, heat: number, now: number): boolean
  tick(now: number): void
  /** Pre-warms a key: makes it hot, and keeps it hot for `holdMs` without any access. */
  warm(track: HeatTrack, reason: string, now: number, holdMs: number): void
  /** All keys that are hot. */
  handled(): Iterable<HandledKey>
  /** Chooses again for a hot key: by what is now known about its load, or because its strategy was given up (`why`). */
  rechoose(track: HeatTrack, now: number, why?: string): void
  /** A key that was hot before a restart; it gets `graceMs` to be seen again. */
  restore(track: HeatTrack, entry: TableEntry, now: number, graceMs: number): void
  /** The rule of an active track has changed or is gone. */
  reconsider(track: HeatTrack, rule: Rule | undefined, now: number): void
}

/** A hot key, its strategy, and since when. */
export interface HandledKey {
  readonly track: HeatTrack
  readonly entry: TableEntry
  readonly since: number
}

/** The tracks that are hot. */
export function* handledOf(tracks: Iterable<HeatTrack>): Generator<HandledKey> {
  for (const track of tracks) {
    const { state } = track
    if (state === undefined || state.phase === 'warming') continue
    // A pre-warmed key has been at its level for longer than it has been hot, so that only its hold counts.
    yield { track, entry: state.entry, since: Math.max(state.levelSince, state.since) }
  }
}
