import type { StrategyName } from '@firebreak/core'
import type { KeyPattern, Rule, RuleLevel, StrategyTemplate } from '@firebreak/core/rules'

/**
 * A rule while it is written. What is saved is the text of `json`; the form is a view of it, and each of its fields changes
 * that field alone, so that neither can lose what the other has.
 */
export interface RuleDraft {
  readonly json: string
  /** The rule for the form; undefined while the JSON is broken or written in the short form. */
  readonly rule: Rule | undefined
  /** Why the JSON cannot be read. */
  readonly problem?: string
  /** False while an existing rule is edited: its name stays. */
  readonly isNew: boolean
}

export const patternKinds = [
  'prefix',
  'exact',
  'suffix',
  'glob',
  'regex',
] as const satisfies readonly KeyPattern['kind'][]
export const strategyNames = [
  'LocalCache',
  'RedundantKeys',
  'RateLimit',
  'Observe',
] as const satisfies readonly StrategyName[]

/** Strategies as they begin in the form; what a line leaves out is the hub's default. */
const templates: Readonly<Record<StrategyName, object>> = {
  LocalCache: { strategy: 'LocalCache' },
  RedundantKeys: { strategy: 'RedundantKeys' },
  RateLimit: { strategy: 'RateLimit', limit: 1000, windowMs: 1000 },
  Observe: { strategy: 'Observe' },
}

/** The draft of a new rule. */
export function newDraft(): RuleDraft {
  const level = { measure: 'accesses', enter: 1000, exit: 700, strategies: [templates.LocalCache] }
  const rule = { id: '', mode: 'on', pattern: { kind: 'prefix', prefix: '' }, windowMs: 1000, levels: [level] }
  return draftOf(rule as unknown as Rule, true)
}

/** The draft of a rule that exists, or of one that a form has changed. */
export function draftOf(rule: Rule, isNew: boolean): RuleDraft {
  return { json: JSON.stringify(rule, null, 2), rule, isNew }
}

/** What a person typed as JSON. */
export function draftOfJson(json: string, isNew: boolean): RuleDraft {
  try {
    const value: unknown = JSON.parse(json)
    return { json, rule: isWhole(value) ? value : undefined, isNew }
  } catch (error) {
    return { json, rule: undefined, problem: `The JSON cannot be read: ${(error as Error).message}`, isNew }
  }
}

/** What is sent to the hub, or why nothing is. A new rule never takes the place of one that is there. */
export function readyToSave(
  { json, isNew, problem }: RuleDraft,
  existing: readonly Rule[],
): { readonly id: string; readonly body: object } | { readonly problem: string } {
  if (problem !== undefined) return { problem }
  const body: unknown = JSON.parse(json)
  if (typeof body !== 'object' || body === null) return { problem: 'The JSON is not a rule.' }
  const id = String((body as { id?: unknown }).id ?? '')
  if (id === '') return { problem: 'Give the rule a name.' }
  const isThere = existing.some((rule) => rule.id === id)
  if (isNew && isThere) return { problem: `There is a rule ${id} already: edit that one, or choose another name.` }
  if (!isNew && !isThere) return { problem: `There is no rule ${id} any more: its name cannot be changed.` }
  return { id, body }
}

/** What a pattern looks for, as one text; exact keys a line each. */
export function patternValue(pattern: KeyPattern): string {
  switch (pattern.kind) {
    case 'exact':
      return pattern.keys.join('\n')
    case 'prefix':
      return pattern.prefix
    case 'suffix':
      return pattern.suffix
    case 'glob':
      return pattern.glob
    case 'regex':
      return pattern.regex
  }
}

export function patternOf(kind: KeyPattern['kind'], value: string): KeyPattern {
  if (kind === 'exact') return { kind, keys: value.split('\n').filter((key) => key !== '') }
  return { kind, [kind]: value } as unknown as KeyPattern
}

/** The same rule with one level changed. */
export function withLevel(rule: Rule, index: number, change: (level: RuleLevel) => RuleLevel): Rule {
  return { ...rule, levels: rule.levels.map((level, at) => (at === index ? change(level) : level)) }
}

/** The exit level keeps its distance: it may never be above the threshold. */
export function withThreshold(level: RuleLevel, enter: number): RuleLevel {
  return { ...level, enter, exit: level.enter > 0 ? (level.exit / level.enter) * enter : enter * 0.7 }
}

/** The same strategy stays as it is, with all its parameters. */
export function withStrategy(level: RuleLevel, name: StrategyName): RuleLevel {
  if (level.strategies[0]?.strategy === name) return level
  return { ...level, strategies: [templates[name] as StrategyTemplate] }
}

export function withLimit(level: RuleLevel, limit: number): RuleLevel {
  const [strategy] = level.strategies
  return strategy?.strategy === 'RateLimit' ? { ...level, strategies: [{ ...strategy, limit }] } : level
}

/** Whether the form can show a rule: the short form that people may write has other fields. */
function isWhole(value: unknown): value is Rule {
  const { pattern, levels, windowMs } = (value ?? {}) as Partial<Rule>
  if (!Array.isArray(levels) || levels.length === 0 || typeof windowMs !== 'number') return false
  const isLevel = (level: Partial<RuleLevel> | null) =>
    typeof level?.enter === 'number' && Array.isArray(level.strategies)
  if (!(levels as Partial<RuleLevel>[]).every(isLevel)) return false
  return patternKinds.some((kind) => kind === pattern?.kind) && typeof patternValueOrNone(pattern!) === 'string'
}

function patternValueOrNone(pattern: KeyPattern): string | undefined {
  return pattern.kind === 'exact' && !Array.isArray(pattern.keys) ? undefined : patternValue(pattern)
}
