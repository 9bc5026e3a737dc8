import {
  type Clock,
  entryId,
  type HistoryEvent,
  type KeyEffect,
  keyText,
  parseKeyText,
  type TableEntry,
} from '@firebreak/core'
import { deliveredText } from './episodes.ts'

/** Hot keys whose first answered read is waited for. */
const maxAwaited = 10_000

export interface EpisodeStepsOptions {
  readonly clock: Clock
  readonly record: (event: HistoryEvent) => void
}

/**
 * Records when a hot key's table was sent to the sensors, and when the first of them reported a read answered by it.
 */
export class EpisodeSteps {
  readonly #options: EpisodeStepsOptions
  /** Keys that were delivered and of which no sensor has told yet. */
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

  /** A sensor's status tells what a strategy did for a key. */
  effect({ redisClusterId, key: text, localHits }: KeyEffect, hostId: string): void {
    if (localHits <= 0 || this.#awaited.size === 0) return
    const key = parseKeyText(text)
    const id = key === undefined ? '' : entryId(redisClusterId, key)
    const entry = this.#awaited.get(id)
    if (entry === undefined) return
    this.#awaited.delete(id)
    this.#tell(entry, 'handled', `${hostId} answered the first reads by ${entry.strategy.strategy}`)
  }

  #tell({ redisClusterId, key, ruleId }: TableEntry, kind: 'delivered' | 'handled', text: string): void {
    this.#options.record({ at: this.#options.clock.now(), kind, redisClusterId, key: keyText(key), ruleId, text })
  }
}
