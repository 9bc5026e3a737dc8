import { copyName, type Strategy, type StrategyName } from '@firebreak/core'
import type { Rule, RuleLevel, StrategyTemplate } from '@firebreak/core/rules'
import { type KeyLoad, weighStrategies } from './weigh-strategies.ts'

/** What the choice of a strategy may consider. */
export interface StrategyChoice {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly rule: Rule
  readonly level: RuleLevel
  /** Processes of the services that touch the key. */
  readonly processCount: number
}

/** A strategy made for a key, and why this one, in words; undefined if there was no choice. */
export interface ChosenStrategy {
  readonly strategy: Strategy
  readonly why?: string
}

/** Makes a hot key's strategy from those that its level allows. */
export type StrategyChooser = (choice: StrategyChoice) => ChosenStrategy

/** The first strategy of the level, made for the key. */
export const chooseFirstStrategy: StrategyChooser = (choice) => ({
  strategy: makeStrategy(choice.level.strategies[0]!, choice),
})

/** What is known about a key's load; undefined if it is too new. */
export type LoadOfKey = (
  redisClusterId: string,
  key: string,
) => Omit<KeyLoad, 'processCount' | 'maxStalenessMs'> | undefined

/** Chooses by the key's load among the strategies that its level allows, except those tried without effect. */
export function chooseByLoad(
  loadOf: LoadOfKey,
  isGivenUp: (redisClusterId: string, key: string, name: StrategyName) => boolean,
): StrategyChooser {
  return (choice) => {
    const { redisClusterId, key, level, rule, processCount } = choice
    const left = level.strategies.filter(({ strategy }) => !isGivenUp(redisClusterId, key, strategy))
    if (left.length === 0)
      return {
        strategy: { strategy: 'Observe' },
        why: 'Observe: everything that the rule allows was tried without effect',
      }
    if (level.strategies.length === 1) return { strategy: makeStrategy(level.strategies[0]!, choice) }
    const load = loadOf(redisClusterId, key)
    if (load === undefined) return { strategy: makeStrategy(left[0]!, choice) }
    const { template, why } = weighStrategies(left, { ...load, processCount, maxStalenessMs: rule.maxStalenessMs })
    return { strategy: makeStrategy(template, choice), why }
  }
}

/** A strategy from its template: copies get names, and the rule's bound on staleness is added. */
export function makeStrategy(template: StrategyTemplate, { key, rule, processCount }: StrategyChoice): Strategy {
  if (template.strategy === 'RedundantKeys') {
    const { copyCount, ttlJitterMs, copiesPerNode, ttl } = template
    const copies = Array.from({ length: copyCount }, (_, index) => copyName(template.template, key, index + 1))
    return {
      strategy: 'RedundantKeys',
      copies,
      ttlJitterMs,
      ...(copiesPerNode !== undefined && { copiesPerNode, template: template.template }),
      ...(ttl !== undefined && { ttl }),
    }
  }
  if (template.strategy === 'RateLimit' && template.scope.startsWith('process')) {
    // Each process gets its share, at least one access.
    const share = (whole: number) => Math.max(1, Math.floor(whole / Math.max(1, processCount)))
    const { limit, burst } = template
    return { ...template, limit: share(limit), ...(burst !== undefined && { burst: share(burst) }) }
  }
  if (template.strategy === 'LocalCache' && rule.maxStalenessMs !== undefined) {
    return { maxStalenessMs: rule.maxStalenessMs, ...template }
  }
  return template
}
