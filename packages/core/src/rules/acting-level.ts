import type { Rule, RuleLevel } from './rule.ts'

/**
 * The first level of a rule, from `from` on, at which something is done, with its strategies that do something;
 * undefined if the rule only observes.
 */
export function actingLevel(rule: Rule, from = 0): { readonly index: number; readonly level: RuleLevel } | undefined {
  for (let index = from; index < rule.levels.length; index++) {
    const level = rule.levels[index]!
    const strategies = level.strategies.filter(({ strategy }) => strategy !== 'Observe')
    if (strategies.length > 0) return { index, level: { ...level, strategies } }
  }
  return undefined
}
