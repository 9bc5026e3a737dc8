import { compilePattern, type KeyPattern, type Rule, runsBeside } from '@firebreak/core/rules'

/**
 * The rule that takes every key of this one, so that this one never does anything; undefined if there is none, or if
 * the patterns alone cannot tell.
 */
export function winningRule(rule: Rule, all: Iterable<Rule>): Rule | undefined {
  if (rule.mode === 'off' || runsBeside(rule)) return undefined
  for (const other of all) {
    if (other.id === rule.id || other.mode === 'off' || other.rollout !== undefined || runsBeside(other)) continue
    const isBefore = other.priority > rule.priority || (other.priority === rule.priority && other.id < rule.id)
    const isForAll = isWider(other.redisClusterId, rule.redisClusterId) && isWider(other.serviceId, rule.serviceId)
    if (isBefore && isForAll && coversAll(other, rule.pattern)) return other
  }
  return undefined
}

function isWider(other: string, own: string): boolean {
  return other === '*' || other === own
}

/** Whether a rule matches every key that a pattern matches. */
function coversAll({ pattern, except }: Rule, own: KeyPattern): boolean {
  if (own.kind === 'exact') {
    const matches = compilePattern(pattern)
    const excepts = except.map(compilePattern)
    return own.keys.every((key) => matches(key) && !excepts.some((isExcepted) => isExcepted(key)))
  }
  if (except.length > 0) return false
  if (pattern.kind === 'glob' && /^\*+$/.test(pattern.glob)) return true
  return pattern.kind === 'prefix' && own.kind === 'prefix' && own.prefix.startsWith(pattern.prefix)
}
