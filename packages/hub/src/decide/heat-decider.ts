import type { Rule, TableEntry } from '@firebreak/core'
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
  /** A key that was hot before a restart; it gets `graceMs` to be seen again. */
  restore(track: HeatTrack, entry: TableEntry, now: number, graceMs: number): void
  /** The rule of an active track is another now, or is gone. */
  reconsider(track: HeatTrack, rule: Rule | undefined, now: number): void
  /** Why the key is where it is, in words. */
  reasonOf(track: HeatTrack, now: number): string
}
