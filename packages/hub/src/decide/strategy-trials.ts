import { entryId, type StrategyName } from '@firebreak/core'

/** What a strategy recently did for a key, from the shields' statuses. */
export interface StrategyEffect {
  /** Reads in the last seconds that the strategy could have helped. */
  readonly reads: number
  /** Reads that it did help. */
  readonly helped: number
  readonly errors: number
}

/** Why a strategy is given up; undefined: it stays. */
export type TrialVerdict = { readonly why: string } | undefined

/** A strategy gets this long to show its effect. */
const trialMs = 8000
/** How long an ineffective strategy is not tried again. */
const givenUpMs = 600_000
/** Fewer reads than this in the last seconds prove nothing. */
const enoughReads = 100
const uselessShare = 0.05
const maxErrorShare = 0.05
const maxGivenUp = 10_000

/** Checks whether strategies have an effect, and remembers those that had none. */
export class StrategyTrials {
  readonly #givenUp = new Map<string, number>()

  /** True while a key's strategy should not be tried again. */
  isGivenUp(redisClusterId: string, key: string, name: StrategyName, now: number): boolean {
    const until = this.#givenUp.get(trialId(redisClusterId, key, name))
    return until !== undefined && now < until
  }

  /** Remembers that a strategy did not help a key. */
  giveUp(redisClusterId: string, key: string, name: StrategyName, now: number): void {
    if (this.#givenUp.size >= maxGivenUp) this.#forget(now)
    this.#givenUp.set(trialId(redisClusterId, key, name), now + givenUpMs)
  }

  /**
   * Judges a strategy that has been in force for `ageMs`; one without effect, or with errors, is given up from now on.
   */
  judge(
    redisClusterId: string,
    key: string,
    name: StrategyName,
    ageMs: number,
    effect: StrategyEffect,
    now: number,
  ): TrialVerdict {
    if (ageMs < trialMs || name === 'Observe') return undefined
    const why = objection(name, effect)
    if (why === undefined) return undefined
    this.giveUp(redisClusterId, key, name, now)
    return { why }
  }

  #forget(now: number): void {
    for (const [id, until] of this.#givenUp) if (now >= until) this.#givenUp.delete(id)
    // All of them are still in force: forgets the oldest.
    const oldest = this.#givenUp.keys().next().value
    if (this.#givenUp.size >= maxGivenUp && oldest !== undefined) this.#givenUp.delete(oldest)
  }
}

function objection(name: StrategyName, { reads, helped, errors }: StrategyEffect): string | undefined {
  if (errors > enoughReads * maxErrorShare && errors > reads * maxErrorShare) {
    return `${name} is rolled back: it raised ${Math.round(errors)} errors in ${Math.round(reads)} reads`
  }
  if (name !== 'LocalCache' || reads < enoughReads || helped >= reads * uselessShare) return undefined
  return `${name} is rolled back: it answered only ${((helped / reads) * 100).toFixed(1)} % of ${Math.round(reads)} reads`
}

function trialId(redisClusterId: string, key: string, name: StrategyName): string {
  return `${name} ${entryId(redisClusterId, key)}`
}
