import type { HeatMeasure, Rule } from '@firebreak/core/rules'
import type { LevelNow } from '../auto/auto-levels.ts'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { StrategyChooser } from '../decide/choose-strategy.ts'
import { readTotal } from '../decide/read-level.ts'
import type { KeyEffects } from '../fleet/key-effects.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { HeatPost, PostLevel } from './heat-board.ts'

export interface PostOptions {
  readonly totals: AccessTotals
  readonly effects: KeyEffects
  readonly levelNow: LevelNow
  readonly chooseStrategy: StrategyChooser
  readonly processCount: (services: ReadonlySet<string>) => number
  readonly settleMs: number
  readonly settleJitterMs: number
  readonly random: () => number
}

/** A track's windows and its rule, as the board expects them. */
export function makePost(id: string, track: HeatTrack, rule: Rule, options: PostOptions, now: number): HeatPost {
  const { sliceMs, headAgeMs, accesses, writes, bytes } = track.slices(now)
  const { redisClusterId, key, services } = track
  const processCount = options.processCount(services)
  const awaitedMs = track.awaitedMs(now)
  const effect = options.effects.own(redisClusterId, key, now)
  return {
    id,
    windowMs: track.windowMs,
    sliceMs,
    headAgeMs: Math.round(headAgeMs),
    accesses: withoutZeros(accesses),
    ...(writes && { writes: withoutZeros(writes) }),
    ...(bytes && { bytes: withoutZeros(bytes) }),
    ...(awaitedMs > 0 && { awaitedMs: Math.round(awaitedMs) }),
    levels: rule.levels.map((of): PostLevel => {
      const level = options.levelNow(track, of, now)
      const { measure, enter, exit, enterShare, exitShare, shareMinimum } = level
      if (enterShare === undefined) return { measure, enter, exit }
      const all = readTotal(track, level, now, options.totals)
      const rest = exitShare === undefined ? {} : { exitShare }
      return { measure, enter, exit, all, enterShare, shareMinimum: shareMinimum ?? 0, ...rest }
    }),
    minHoldMs: rule.minHoldMs,
    strategies: rule.levels.map((level) =>
      JSON.stringify(options.chooseStrategy({ redisClusterId, key, rule, level, processCount }).strategy),
    ),
    services: [...services],
    ...(rule.levels.some(({ enterShare }) => enterShare !== undefined) && { hasShare: true }),
    settleMs: Math.round(options.settleMs + options.random() * options.settleJitterMs),
    ...(effect && effect.reads > 0 && { effect }),
  }
}

/** True if this hub counts so much of the key that the others must know: T/(2·hubs), see `HeatBoard`. */
export function isWorthPosting(
  track: HeatTrack,
  rule: Rule,
  hubCount: number,
  { totals, levelNow }: Pick<PostOptions, 'totals' | 'levelNow'>,
  now: number,
): boolean {
  const own = (measure: HeatMeasure) => track.ownHeat(measure, now) * 2 * hubCount
  return rule.levels.some((of) => {
    const level = levelNow(track, of, now)
    if (own(level.measure) >= level.enter) return true
    if (level.enterShare === undefined) return false
    const all = readTotal(track, level, now, totals)
    return all > 0 && own('accesses') >= level.enterShare * all
  })
}

/** Counts with two decimals, the precision of windows, without the empty slices at the old end. */
function withoutZeros(counts: readonly number[]): number[] {
  const end = counts.findLastIndex((count) => count > 0)
  return counts.slice(0, end + 1).map((count) => Math.round(count * 100) / 100)
}
