import type { Strategy, TableEntry } from '@firebreak/core'

/**
 * One object for all entries with the same strategy. A table of 100,000 keys under one rule then has it once, and whether a
 * key's strategy has changed is seen by comparing two references.
 */
export class StrategyPool {
  readonly #strategies = new Map<string, Strategy>()
  readonly #maxStrategies: number

  constructor(maxStrategies = 1024) {
    this.#maxStrategies = maxStrategies
  }

  pooled(entry: TableEntry): TableEntry {
    // The names of its copies make each of these another.
    if (entry.strategy.strategy === 'RedundantKeys') return entry
    const id = JSON.stringify(entry.strategy)
    const known = this.#strategies.get(id)
    if (known !== undefined) return { ...entry, strategy: known }
    if (this.#strategies.size >= this.#maxStrategies) this.#strategies.clear()
    this.#strategies.set(id, entry.strategy)
    return entry
  }
}
