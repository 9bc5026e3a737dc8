import { isKnownTemplate } from '../strategy/known-strategy.ts'
import { compilePattern } from './key-matcher.ts'
import type { KeyPattern, Rule, RuleLevel } from './rule.ts'

/** The rules that this version can follow, and the ids of those that it cannot. */
export interface KnownRules {
  readonly rules: readonly Rule[]
  readonly unknownIds: readonly string[]
}

/**
 * Accepts rules from a store or a hub that may be of a later version. A rule with something unknown that it acts on (a
 * kind of pattern, a measure, a strategy) is left alone, and so are its keys: if its pattern is known, it still wins
 * them, in shadow mode with a level that is never reached, so that no rule of lower priority overrides what its author
 * decided. An unknown field is ignored (`strategy/known-strategy.ts` has the convention behind this).
 */
export function knownRules(values: Iterable<unknown>): KnownRules {
  const rules: Rule[] = []
  const unknownIds: string[] = []
  for (const value of values) {
    if (isKnownRule(value)) {
      rules.push(value)
      continue
    }
    const inert = inertRule(value)
    unknownIds.push(inert?.id ?? idOf(value))
    if (inert !== undefined) rules.push(inert)
  }
  return { rules, unknownIds }
}

const modes: readonly unknown[] = ['off', 'shadow', 'on']
const measures: readonly unknown[] = ['accesses', 'reads', 'writes', 'bytes']

function isKnownRule(value: unknown): value is Rule {
  if (!hasKnownKeys(value) || !modes.includes(value.mode)) return false
  const { windowMs, minHoldMs, levels } = value
  if (![windowMs, minHoldMs].every(Number.isFinite) || !Array.isArray(levels) || levels.length === 0) return false
  return (levels as readonly unknown[]).every(isKnownLevel)
}

/** True if we know which keys a rule applies to. */
function hasKnownKeys(value: unknown): value is Rule {
  if (typeof value !== 'object' || value === null) return false
  const { id, priority, redisClusterId, serviceId, pattern, except } = value as Rule
  if (![id, redisClusterId, serviceId].every((text) => typeof text === 'string') || !Number.isFinite(priority))
    return false
  return isKnownPattern(pattern) && Array.isArray(except) && except.every(isKnownPattern)
}

function isKnownPattern(pattern: KeyPattern | undefined): boolean {
  try {
    // What has no matcher is a kind that is not known; what throws is a text that is not understood.
    return compilePattern(pattern!)?.('') !== undefined
  } catch {
    return false
  }
}

function isKnownLevel(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { measure, enter, exit, strategies, shareOf = 'service', enterShare = 0, auto = true } = value as RuleLevel
  if (auto !== true) return false
  if (!measures.includes(measure) || ![enter, exit, enterShare].every(Number.isFinite)) return false
  if (shareOf !== 'service' && shareOf !== 'node') return false
  return Array.isArray(strategies) && strategies.length > 0 && strategies.every(isKnownTemplate)
}

function inertRule(value: unknown): Rule | undefined {
  if (!hasKnownKeys(value)) return undefined
  const { id, priority, redisClusterId, serviceId, pattern, except, mode } = value
  const never = Number.MAX_SAFE_INTEGER
  const level: RuleLevel = { measure: 'accesses', enter: never, exit: never, strategies: [{ strategy: 'Observe' }] }
  const keys = { id, priority, redisClusterId, serviceId, pattern, except }
  return { ...keys, mode: mode === 'off' ? 'off' : 'shadow', windowMs: 1000, levels: [level], minHoldMs: 0 }
}

function idOf(value: unknown): string {
  const id = (value as Partial<Rule> | null)?.id
  return typeof id === 'string' ? id : '?'
}
