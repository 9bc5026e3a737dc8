import type { Rule } from './rule.ts'

/** True if keys are hot by what they cost their node (`threshold: auto`). */
export function isAutoRule({ levels }: Pick<Rule, 'levels'>): boolean {
  return levels.some(({ auto }) => auto === true)
}

/**
 * True for a rule that only watches: in shadow mode an `auto` rule takes no key away from other rules, so that what it
 * would do can be compared with what they do. (Any other rule in shadow mode wins its keys, and nothing is done for
 * them.)
 */
export function runsBeside(rule: Pick<Rule, 'levels' | 'mode'>): boolean {
  return rule.mode === 'shadow' && isAutoRule(rule)
}
