import type { LevelNow } from '../auto/auto-levels.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { AccessTotals } from './access-totals.ts'
import { isEntered, readLevel } from './read-level.ts'
import { coldReason, coolingReason, hotReason, warmingReason } from './reason.ts'

/** Why a key is in its state, in words. */
export function trackReason(track: HeatTrack, totals: AccessTotals, now: number, levelNow: LevelNow): string {
  const { rule, state } = track
  if (rule === undefined) return coldReason(rule)
  if (state === undefined) return coldReason(rule, levelNow(track, rule.levels[0]!, now))
  const level = levelNow(track, rule.levels[state.phase === 'warming' ? 0 : state.level]!, now)
  const reading = readLevel(track, level, now, totals)
  if (state.phase === 'warming') return warmingReason(rule, level, reading)
  const shadow = rule.mode === 'shadow' ? ' (shadow: nothing is delivered)' : ''
  if (state.phase === 'cooling') return `${coolingReason(rule, level, reading)}${shadow}`
  return `${isEntered(level, reading) ? hotReason(rule, level, reading) : state.entry.reason}${shadow}`
}
