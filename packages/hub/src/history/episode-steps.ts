import {
  type Clock,
  entryId,
  type HistoryEvent,
  type KeyEffect,
  keyText,
  parseKeyText,
  type StrategyName,
  type TableEntry,
} from '@firebreak/core'
import { deliveredText } from './episodes.ts'

/** Maximum number of hot keys whose first sign of handling is awaited. */
const maxAwaited = 10_000

export interface EpisodeStepsOptions {
  readonly clock: Clock
  readonly record: (event: HistoryEvent) => void
}

/** Records when a hot key's table was sent to the sensors, and when the first sensor reported carrying it out. */
export class EpisodeSteps {
  readonly #options: EpisodeStepsOptions
  /** Delivered keys that no sensor has reported yet. */
  readonly #awaited = new Map<string, TableEntry>()

  constructor(options: EpisodeStepsOptions) {
    this.#options = options
  }

  delivered(entry: TableEntry, services: readonly string[], sensors: number): void {
    const { redisClusterId, key, strategy } = entry
    this.#tell(entry, 'delivered', deliveredText(strategy.strategy, sensors, services))
    if (strategy.strategy === 'Observe') return
    if (this.#awaited.size >= maxAwaited) this.#awaited.delete(this.#awaited.keys().next().value!)
    this.#awaited.set(entryId(redisClusterId, key), entry)
  }

  /** A sensor's status says what a strategy did for a key. */
  effect(effect: KeyEffect, hostId: string): void {
    if (this.#awaited.size === 0) return
    const { redisClusterId, ruleId } = effect
    const key = parseKeyText(effect.key)
    const id = key === undefined ? '' : entryId(redisClusterId, key)
    const entry = this.#awaited.get(id)
    if (entry === undefined || (ruleId !== undefined && ruleId !== entry.ruleId)) return
    if (!isHandled(entry.strategy.strategy, effect)) return
    this.#awaited.delete(id)
    this.#tell(entry, 'handled', `${hostId} ${firsts[entry.strategy.strategy]} by ${entry.strategy.strategy}`)
  }

  #tell({ redisClusterId, key, ruleId }: TableEntry, kind: 'delivered' | 'handled', text: string): void {
    this.#options.record({ at: this.#options.clock.now(), kind, redisClusterId, key: keyText(key), ruleId, text })
  }
}

/** What a process did first, by strategy. */
const firsts: Readonly<Record<StrategyName, string>> = {
  LocalCache: 'answered the first reads',
  RedundantKeys: 'read the first copies',
  RateLimit: 'held the first requests to their limit',
  Combine: 'sent the first increments',
  Observe: 'counted the first accesses',
}

/** Whether a process' report about a key shows that it carries out the strategy. */
function isHandled(strategy: StrategyName, effect: KeyEffect): boolean {
  const { localHits, redisReads, limited = 0, copyReads = 0, combined = 0 } = effect
  switch (strategy) {
    case 'LocalCache':
      return localHits > 0
    case 'RedundantKeys':
      return copyReads > 0
    // Accesses within the limit pass: what counts is that the limit was checked.
    case 'RateLimit':
      return limited + redisReads + localHits > 0
    case 'Combine':
      return combined > 0
    case 'Observe':
      return false
  }
}
