import type { Rule, RuleLevel, Strategy, StrategyTemplate } from '@firebreak/core'

/** What a choice of strategy may weigh. */
export interface StrategyChoice {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly rule: Rule
  readonly level: RuleLevel
  /** Processes of the services that touch the key. */
  readonly processCount: number
}

/** Makes the strategy of a hot key from what its level allows. */
export type StrategyChooser = (choice: StrategyChoice) => Strategy

/** The first strategy of the level, made for the key. */
export const chooseFirstStrategy: StrategyChooser = (choice) => makeStrategy(choice.level.strategies[0]!, choice)

/** A strategy from its template: copies get names, and the rule's own bound on staleness is written in. */
export function makeStrategy(template: StrategyTemplate, { key, rule }: StrategyChoice): Strategy {
  if (template.strategy === 'RedundantKeys') {
    const { copyCount, ttlJitterMs } = template
    const copies = Array.from({ length: copyCount }, (_, index) =>
      template.template.replaceAll('{n}', String(index + 1)).replaceAll('{key}', () => key),
    )
    return { strategy: 'RedundantKeys', copies, ttlJitterMs }
  }
  if (template.strategy === 'LocalCache' && rule.maxStalenessMs !== undefined) {
    return { maxStalenessMs: rule.maxStalenessMs, ...template }
  }
  return template
}
