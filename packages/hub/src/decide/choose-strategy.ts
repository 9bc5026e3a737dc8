import { keyBytes, keyName, type Strategy, type StrategyName } from '@firebreak/core'
import type { Rule, RuleLevel, StrategyTemplate } from '@firebreak/core/rules'
import { type KeyLoad, weighStrategies } from './weigh-strategies.ts'

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

/** A strategy made for a key, and why this one, in words; undefined where there was nothing to choose. */
export interface ChosenStrategy {
  readonly strategy: Strategy
  readonly why?: string
}

/** Makes the strategy of a hot key from what its level allows. */
export type StrategyChooser = (choice: StrategyChoice) => ChosenStrategy

/** The first strategy of the level, made for the key. */
export const chooseFirstStrategy: StrategyChooser = (choice) => ({
  strategy: makeStrategy(choice.level.strategies[0]!, choice),
})

/** What is known of a key's load; undefined where it is too new. */
export type LoadOfKey = (
  redisClusterId: string,
  key: string,
) => Omit<KeyLoad, 'processCount' | 'maxStalenessMs'> | undefined

/** Chooses by the key's load among what its level allows, but for what was tried for it and brought nothing. */
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
        why: 'Observe: everything that the rule allows was tried and brought nothing',
      }
    if (level.strategies.length === 1) return { strategy: makeStrategy(level.strategies[0]!, choice) }
    const load = loadOf(redisClusterId, key)
    if (load === undefined) return { strategy: makeStrategy(left[0]!, choice) }
    const { template, why } = weighStrategies(left, { ...load, processCount, maxStalenessMs: rule.maxStalenessMs })
    return { strategy: makeStrategy(template, choice), why }
  }
}

/** A strategy from its template: copies get names, and the rule's own bound on staleness is written in. */
export function makeStrategy(template: StrategyTemplate, { key, rule, processCount }: StrategyChoice): Strategy {
  if (template.strategy === 'RedundantKeys') {
    const { copyCount, ttlJitterMs } = template
    const copies = Array.from({ length: copyCount }, (_, index) =>
      nameFrom(template.template.replaceAll('{n}', String(index + 1)), key),
    )
    return { strategy: 'RedundantKeys', copies, ttlJitterMs }
  }
  if (template.strategy === 'RateLimit' && template.scope === 'process') {
    // Each process takes its share, at least one access.
    return { ...template, limit: Math.max(1, Math.floor(template.limit / Math.max(1, processCount))) }
  }
  if (template.strategy === 'LocalCache' && rule.maxStalenessMs !== undefined) {
    return { maxStalenessMs: rule.maxStalenessMs, ...template }
  }
  return template
}

/** A name by a template. In bytes: the name of a key that is not text (see `keyName`) is no piece of another name. */
function nameFrom(template: string, key: string): string {
  const bytes = keyBytes(key)
  const [first, ...others] = template.split('{key}').map((piece) => Buffer.from(piece))
  return keyName(Buffer.concat([first!, ...others.flatMap((piece) => [bytes, piece])]))
}
