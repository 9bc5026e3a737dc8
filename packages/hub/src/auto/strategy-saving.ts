import type { StrategyTemplate } from '@firebreak/core/rules'

/** What a strategy's cost and gain are computed from. */
export interface SavingGround {
  readonly readsPerSecond: number
  readonly writesPerSecond: number
  /** Processes of the services that touch the key: each reloads it after a write. */
  readonly processCount: number
  /** Masters that copies are spread over. */
  readonly nodeCount: number
}

/** What a strategy would keep from the key's node, net of its cost. */
export interface StrategySaving {
  readonly strategy: StrategyTemplate['strategy']
  readonly savedPerSecond: number
  /** What it costs the node, in operations per second, and for what. */
  readonly costPerSecond: number
  readonly costOf: string
}

/** About what a Redis in the same network allows. */
const roundTripsPerSecond = 1000

/** The strategy that saves most operations per second of the key's node; ties go to the first. */
export function bestSaving(allowed: readonly StrategyTemplate[], ground: SavingGround): StrategySaving {
  const savings = allowed.map((template) => savingOf(template, ground))
  return savings.reduce((best, next) => (next.savedPerSecond > best.savedPerSecond ? next : best))
}

export function savingOf(template: StrategyTemplate, ground: SavingGround): StrategySaving {
  const { readsPerSecond: reads, writesPerSecond: writes, processCount, nodeCount } = ground
  switch (template.strategy) {
    case 'LocalCache': {
      // After each write every process reads the key once more; never more often than it is read at all.
      const cost = Math.min(reads, writes * Math.max(1, processCount))
      return saving(template.strategy, reads - cost, cost, 'reloads after writes')
    }
    case 'RedundantKeys': {
      const places = Math.min(template.copyCount + 1, nodeCount)
      if (places < 2) return saving(template.strategy, 0, 0, 'there is only one node')
      // Each node serves its share of the reads and takes its share of the copies' writes.
      const cost = (writes * template.copyCount) / places
      return saving(template.strategy, reads * (1 - 1 / places) - cost, cost, 'writes of copies')
    }
    case 'RateLimit': {
      const allowed = (template.limit * 1000) / template.windowMs
      return saving(template.strategy, Math.max(0, reads + writes - allowed), 0, 'nothing but what is refused')
    }
    case 'Combine': {
      // Each process has one command per counter in flight at a time.
      const cost = Math.min(writes, Math.max(1, processCount) * roundTripsPerSecond)
      return saving(template.strategy, writes - cost, cost, 'one command per round trip and process')
    }
    case 'Observe':
      // Nothing is saved; a caller that only asks still learns what would be possible.
      return saving(template.strategy, reads, 0, 'nothing')
  }
}

function saving(
  strategy: StrategyTemplate['strategy'],
  saved: number,
  costPerSecond: number,
  costOf: string,
): StrategySaving {
  return { strategy, savedPerSecond: Math.max(0, saved), costPerSecond, costOf }
}
