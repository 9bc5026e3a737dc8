import type { Strategy, TableEntry } from '@firebreak/core'

/**
 * One object for all entries with the same strategy, and one string for each name of a rule or a cluster. A table of
 * 100,000 keys under one rule then has them once, and a change of strategy shows by comparing two references.
 */
export class KeptEntries {
  readonly #strategies = new Map<string, Strategy>()
  readonly #most: number
  readonly #names = new Map<string, string>()
  #last: Strategy | undefined

  constructor(most = 1024) {
    this.#most = most
  }

  /**
   * An entry as it is kept here: JSON has made a string of its own for each name of a rule and of a cluster, and the
   * reason is for people, who read it at the hub.
   */
  compact(entry: TableEntry): TableEntry {
    const { ruleId, redisClusterId, strategy } = entry
    return {
      ...entry,
      ruleId: this.#name(ruleId),
      redisClusterId: this.#name(redisClusterId),
      strategy: this.of(strategy),
      reason: '',
    }
  }

  of(strategy: Strategy): Strategy {
    // The names of its copies make each of these different.
    if (strategy.strategy === 'RedundantKeys') return strategy
    if (this.#last !== undefined && isSame(this.#last, strategy)) return this.#last
    const id = JSON.stringify(strategy)
    let known = this.#strategies.get(id)
    if (known === undefined) {
      if (this.#strategies.size >= this.#most) this.#strategies.clear()
      known = strategy
      this.#strategies.set(id, strategy)
    }
    this.#last = known
    return known
  }

  #name(name: string): string {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    if (this.#names.size >= this.#most) this.#names.clear()
    this.#names.set(name, name)
    return name
  }
}

/** Whether both have equal fields in the same order, as all from one rule do. */
function isSame(a: Strategy, b: Strategy): boolean {
  const names = Object.keys(a)
  const others = Object.keys(b)
  if (names.length !== others.length) return false
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as keyof Strategy
    if (others[index] !== name || a[name] !== b[name]) return false
  }
  return true
}
