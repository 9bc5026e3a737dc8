import type { Strategy } from '@firebreak/core'

/**
 * One object for all entries with the same strategy. A table of 100,000 keys under one rule then has it once, and a
 * change of strategy shows by comparing two references.
 */
export class StrategyPool {
  readonly #strategies = new Map<string, Strategy>()
  readonly #maxStrategies: number
  #last: Strategy | undefined

  constructor(maxStrategies = 1024) {
    this.#maxStrategies = maxStrategies
  }

  of(strategy: Strategy): Strategy {
    // The names of its copies make each of these different.
    if (strategy.strategy === 'RedundantKeys') return strategy
    if (this.#last !== undefined && isSame(this.#last, strategy)) return this.#last
    const id = JSON.stringify(strategy)
    let known = this.#strategies.get(id)
    if (known === undefined) {
      if (this.#strategies.size >= this.#maxStrategies) this.#strategies.clear()
      known = strategy
      this.#strategies.set(id, strategy)
    }
    this.#last = known
    return known
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
