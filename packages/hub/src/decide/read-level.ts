import type { RuleLevel } from '@firebreak/core/rules'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { AccessTotals } from './access-totals.ts'
import type { LevelReading } from './reason.ts'

/** Measures a key against a level; the share only if totals are given. */
export function readLevel(track: HeatTrack, level: RuleLevel, now: number, totals?: AccessTotals): LevelReading {
  const heat = track.heat(level.measure, now)
  if (level.enterShare === undefined || totals === undefined) return { heat, share: undefined }
  if (heat < (level.shareMinimum ?? 0)) return { heat, share: 0 }
  const accesses = level.measure === 'accesses' ? heat : track.heat('accesses', now)
  const all = readTotal(track, level, now, totals)
  return { heat, share: all === 0 ? 0 : Math.min(1, accesses / all) }
}

/** All accesses of the service or node that the level's share refers to. */
export function readTotal(track: HeatTrack, level: RuleLevel, now: number, totals: AccessTotals): number {
  return level.shareOf === 'node'
    ? totals.ofNode(track.redisClusterId, track.slot, track.windowMs, now)
    : totals.ofServices(track.redisClusterId, track.services, track.windowMs, now)
}

export function isEntered(level: RuleLevel, { heat, share }: LevelReading): boolean {
  return heat >= level.enter || (share !== undefined && share >= (level.enterShare ?? 2))
}

export function isHeld(level: RuleLevel, { heat, share }: LevelReading): boolean {
  return heat >= level.exit || (share !== undefined && share >= (level.exitShare ?? 2))
}
