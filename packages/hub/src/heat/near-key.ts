import { keyBytes } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { HeatTrack } from './heat-track.ts'
import type { LastMinute } from './last-minute.ts'

/** A key near its threshold, or among the hottest: its heat under each rule, and its last minute if it is displayed. */
export class NearKey {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly slot: number
  /** The key's bytes as Latin-1. */
  readonly id: string
  /** One, unless services have different rules. */
  tracks: HeatTrack[] = []
  /** The rules that the tracks were matched against. */
  generation: number
  lastMinute: LastMinute | undefined
  lastSeenAt: number
  /**
   * What was counted before the key became near, for its first track: slices, newest first, and the age of the newest.
   */
  past: { readonly slices: Float64Array; readonly sliceMs: number } | undefined

  constructor(redisClusterId: string, id: string, key: string, generation: number, now: number) {
    this.redisClusterId = redisClusterId
    this.id = id
    this.key = key
    this.slot = keySlotOfBytes(keyBytes(key))
    this.generation = generation
    this.lastSeenAt = now
  }

  get isCold(): boolean {
    return this.tracks.every(({ state }) => state === undefined)
  }

  /** Accesses per second, over all services. */
  ratePerSecond(now: number): number {
    let rate = 0
    for (const track of this.tracks) rate += (track.heat('accesses', now) * 1000) / track.windowMs
    return rate
  }
}
