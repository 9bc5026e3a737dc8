import { type HistoryEvent, keyText, type TableEntry } from '@firebreak/core'
import type { LevelNow } from '../auto/auto-levels.ts'
import type { AccessTotals } from '../decide/access-totals.ts'
import { coolingReason } from '../decide/reason.ts'
import { trackReason } from '../decide/track-reason.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { BoardDecision } from './heat-board.ts'
import { parseTrackId } from './track-id.ts'

/** Records the board's decisions for users; each is recorded once for all hubs, by the hub whose post led to it. */
export class DecisionHistory {
  readonly #record: (event: HistoryEvent) => void
  readonly #totals: AccessTotals
  readonly #levelNow: LevelNow

  constructor(record: (event: HistoryEvent) => void, totals: AccessTotals, levelNow: LevelNow) {
    this.#record = record
    this.#totals = totals
    this.#levelNow = levelNow
  }

  /** A key became hot, or its handling changed, `at` this time by this hub's clock. */
  hot({ kind, isClaim, state, text }: BoardDecision, track: HeatTrack, at: number): void {
    const rule = track.rule!
    const { reason, strategy } = (track.state as { entry: TableEntry }).entry
    switch (kind) {
      case 'hot':
        this.add(track, rule.mode === 'on' ? 'hot' : 'shadow', at, reason)
        if (isClaim) this.add(track, 'claim', at, `${reason}, seen by one process`)
        return
      case 'prewarm':
        this.add(track, 'prewarm', at, reason)
        return
      case 'rechosen':
        if (text === undefined) this.add(track, 'strategy', at, reason)
        else this.add(track, 'rollback', at, `${text}; now ${strategy.strategy}`)
        return
      case 'strategy':
        this.add(track, 'strategy', at, `${strategy.strategy} at level ${state.level}: ${reason}`)
        return
      case 'extended':
        this.add(track, 'extended', at, `still hot: ${trackReason(track, this.#totals, at, this.#levelNow)}`)
    }
  }

  /** A key is no longer hot; without a track if it was not known here. */
  end(
    { id, kind, heat, share, state, at: decidedAt, text }: BoardDecision,
    track: HeatTrack | undefined,
    at: number,
  ): void {
    const { redisClusterId, ruleId, key } = parseTrackId(id)
    const rule = track?.rule
    const level = track && rule && this.#levelNow(track, rule.levels[0]!, at)
    const why = level === undefined ? '' : `: ${coolingReason(rule!, level, { heat, share })}`
    const cooled = `cooled after ${Math.round((decidedAt - state.since) / 1000)} s${why}`
    const isCooled = kind === 'cooled'
    this.#record({
      at,
      kind: isCooled ? 'cooled' : 'rollback',
      redisClusterId,
      key: keyText(key),
      ruleId,
      text: isCooled ? cooled : (text ?? ''),
    })
  }

  add(track: HeatTrack, kind: HistoryEvent['kind'], at: number, text: string): void {
    const { redisClusterId, key, rule } = track
    this.#record({ at, kind, redisClusterId, key: keyText(key), ruleId: rule?.id ?? '', text })
  }
}
