import type { Rule } from '@firebreak/core/rules'
import type { HeatTrack } from '../heat/heat-track.ts'

/** A track's name on the board. */
export interface TrackName {
  readonly redisClusterId: string
  readonly ruleId: string
  /** What must match for counts to be added up: a rule that measures differently is a different track. */
  readonly measuring: string
  readonly key: string
}

export function trackId(track: HeatTrack, rule: Rule): string {
  return JSON.stringify([track.redisClusterId, rule.id, measuringOf(rule), track.key])
}

export function parseTrackId(id: string): TrackName {
  const [redisClusterId, ruleId, measuring, key] = JSON.parse(id) as [string, string, string, string]
  return { redisClusterId, ruleId, measuring, key }
}

export function measuringOf({ windowMs, mode, levels }: Rule): string {
  const measures = new Set(levels.map(({ measure }) => measure))
  return `${windowMs} ${mode} ${[...measures].sort().join('+')}`
}
