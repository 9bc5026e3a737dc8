import type { StrategyName } from '@firebreak/core'
import type { Fleet } from '../fleet/fleet.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import type { LoadOfKey } from './choose-strategy.ts'
import type { HeatDecider } from './heat-decider.ts'
import { StrategyTrials } from './strategy-trials.ts'

/** A key that was new when it became hot is reviewed once its load is known. */
const reconsiderMs = 5000

/** Checks whether hot keys' strategies help; those that do not are rolled back and reported. */
export class StrategyReview {
  readonly #engine: NearKeys
  readonly #fleet: Fleet
  readonly #trials = new StrategyTrials()

  constructor(engine: NearKeys, fleet: Fleet) {
    this.#engine = engine
    this.#fleet = fleet
  }

  /** What the choice of a strategy considers; undefined while the key is too new. */
  loadOf(redisClusterId: string, key: string, now: number): ReturnType<LoadOfKey> {
    const recent = this.#engine.get(redisClusterId, key)?.lastMinute?.recent(now)
    if (recent === undefined || recent.accesses === 0) return undefined
    return {
      readsPerSecond: recent.accesses - recent.writes,
      writesPerSecond: recent.writes,
      bytesPerAccess: recent.bytes / recent.accesses,
      nodeCount: this.#fleet.nodeCount(redisClusterId),
    }
  }

  isGivenUp(redisClusterId: string, key: string, name: StrategyName, now: number): boolean {
    return this.#trials.isGivenUp(redisClusterId, key, name, now)
  }

  /** Another hub found a strategy ineffective, at this time. */
  giveUp(redisClusterId: string, key: string, name: StrategyName, at: number): void {
    this.#trials.giveUp(redisClusterId, key, name, at)
  }

  /** Called once a second, for all hot keys. */
  judge(decider: HeatDecider, now: number): void {
    for (const { track, entry, since } of [...decider.handled()]) {
      const { redisClusterId, key } = track
      const name = entry.strategy.strategy
      const effect = this.#fleet.effects.effect(redisClusterId, key, now)
      const verdict = effect && this.#trials.judge(redisClusterId, key, name, now - since, effect, now)
      if (verdict !== undefined) decider.rechoose(track, now, verdict.why)
      else if (now - since >= reconsiderMs) decider.rechoose(track, now)
    }
  }
}
