import type { Rule, RuleScope } from '@firebreak/core'
import type { HeatTrack } from './heat-track.ts'
import type { KeyDetail } from './key-detail.ts'

/** One key of one cluster: its tracks, and its detail while it is a candidate. */
export interface KeyHeat {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly slot: number
  readonly tracks: readonly HeatTrack[]
  readonly detail: KeyDetail | undefined
}

/**
 * The keys that are near a threshold or among the hottest: finds a key's heat from its bytes and keeps it within a bound.
 * The intake adds to their tracks, the decider reads, and the views show the candidates.
 */
export interface HeatEngine {
  /** The key's heat, near from now on whatever it is; undefined where the bound leaves no room. */
  find(redisClusterId: string, bytes: Uint8Array, start: number, end: number, now: number): KeyHeat | undefined
  /** The track that counts for a service's rules, matched once and remembered with the key. */
  trackOf(heat: KeyHeat, scope: RuleScope): HeatTrack
  /** Looks at a key after its count changed: the hottest keys get a detail. */
  consider(heat: KeyHeat, track: HeatTrack, now: number): void
  /** Rules changed: tracks are matched anew when they are next touched. */
  setRules(rules: readonly Rule[]): void
  /** A key by its name. */
  get(redisClusterId: string, key: string): KeyHeat | undefined
  /** The keys with a detail. */
  candidates(): Iterable<KeyHeat>
  /** Forgets some idle keys; called often, does a bounded step. */
  sweep(now: number): void
  readonly size: number
  /** Estimated bytes. */
  readonly memoryBytes: number
  /** Keys that found no room, since start. */
  readonly overflowCount: number
}
