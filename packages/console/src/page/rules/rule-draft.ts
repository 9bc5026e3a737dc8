import { defaultLocalCache, type LimitAlgorithm, type StrategyName } from '@firebreak/core'
import { type KeyPattern, type Rule, type RuleLevel, ruleDefaults, type StrategyTemplate } from '@firebreak/core/rules'
import { t } from '../text/text.ts'

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
  'Combine',
  'Observe',
] as const satisfies readonly StrategyName[]

/** Strategies as they begin in the form: every parameter is there to be changed. */
const templates = {
  LocalCache: defaultLocalCache,
  RedundantKeys: { strategy: 'RedundantKeys', copyCount: 4, template: '{key}_{n}', ttlJitterMs: 500 },
  RateLimit: {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1000,
    windowMs: 1000,
    onLimit: 'reject',
    scope: 'process',
  },
  Combine: { strategy: 'Combine', maxCombined: 1024 },
  Observe: { strategy: 'Observe' },
} as const satisfies Readonly<Record<StrategyName, StrategyTemplate>>

/** The draft of a new rule; of a hot key, it is about that key and hot from half of its rate on. */
export function newDraft(from?: {
  readonly name: string
  readonly redisClusterId: string
  readonly rate: number
}): RuleDraft {
  const enter = from === undefined ? 1000 : Math.max(1, Math.round(from.rate / 2))
  const rule: Rule = {
    id: '',
    mode: 'on',
    priority: ruleDefaults.priority,
    redisClusterId: from?.redisClusterId ?? '*',
    serviceId: '*',
    pattern: from === undefined ? { kind: 'prefix', prefix: '' } : { kind: 'exact', keys: [from.name] },
    except: [],
    windowMs: ruleDefaults.windowMs,
    levels: [newLevel(enter)],
    minHoldMs: ruleDefaults.minHoldMs,
  }
  return draftOf(rule, true)
}

function newLevel(enter: number): RuleLevel {
  return { measure: 'accesses', enter, exit: enter * ruleDefaults.exitShare, strategies: [templates.LocalCache] }
}

/** One more level, ten times as hot as the last. */
export function withNewLevel(rule: Rule): Rule {
  const last = rule.levels.at(-1)?.enter ?? 100
  return { ...rule, levels: [...rule.levels, newLevel(Math.min(last * 10, Number.MAX_SAFE_INTEGER / 2))] }
}

export function withoutLevel(rule: Rule, index: number): Rule {
  return { ...rule, levels: rule.levels.filter((_, at) => at !== index) }
}

/** The same object with one field changed; one that is not given is taken out. */
export function withField<T extends object>(holder: T, name: string, value: unknown): T {
  const { [name as keyof T]: _, ...rest } = holder
  return (value === undefined ? rest : { ...holder, [name]: value }) as T
}

/** A share brings its own fields, which may not stand without it. */
export function withShare(level: RuleLevel, enterShare: number | undefined): RuleLevel {
  const { enterShare: _, exitShare: __, shareMinimum, shareOf, ...rest } = level
  if (enterShare === undefined) return rest
  const exitShare = enterShare * ruleDefaults.exitShare
  return {
    ...rest,
    enterShare,
    exitShare,
    shareMinimum: shareMinimum ?? ruleDefaults.shareMinimum,
    shareOf: shareOf ?? 'service',
  }
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
    return {
      json,
      rule: undefined,
      problem: t('The JSON cannot be read: {why}', { why: (error as Error).message }),
      isNew,
    }
  }
}

/** What is sent to the hub, or why nothing is. A new rule never takes the place of one that is there. */
export function readyToSave(
  { json, isNew, problem }: RuleDraft,
  existing: readonly Rule[],
): { readonly id: string; readonly body: object } | { readonly problem: string } {
  if (problem !== undefined) return { problem }
  const body: unknown = JSON.parse(json)
  if (typeof body !== 'object' || body === null) return { problem: t('The JSON is not a rule.') }
  const id = String((body as { id?: unknown }).id ?? '')
  if (id === '') return { problem: t('Give the rule a name.') }
  const isThere = existing.some((rule) => rule.id === id)
  if (isNew && isThere)
    return { problem: t('There is a rule {id} already: edit that one, or choose another name.', { id }) }
  if (!isNew && !isThere) return { problem: t('There is no rule {id} any more: its name cannot be changed.', { id }) }
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
export function withStrategy(level: RuleLevel, at: number, name: StrategyName): RuleLevel {
  if (level.strategies[at]?.strategy === name) return level
  return { ...level, strategies: level.strategies.map((one, index) => (index === at ? templates[name] : one)) }
}

/** One strategy more for the hub to choose from. */
export function withNewStrategy(level: RuleLevel): RuleLevel {
  const next = strategyNames.find((name) => level.strategies.every(({ strategy }) => strategy !== name))
  return next === undefined ? level : { ...level, strategies: [...level.strategies, templates[next]] }
}

export function withoutStrategy(level: RuleLevel, at: number): RuleLevel {
  return { ...level, strategies: level.strategies.filter((_, index) => index !== at) }
}

/** One parameter of one strategy. */
export function withParameter(level: RuleLevel, at: number, name: string, value: unknown): RuleLevel {
  const changed = (one: StrategyTemplate) =>
    one.strategy === 'RateLimit' && name === 'algorithm'
      ? withAlgorithm(one, value as LimitAlgorithm)
      : one.strategy === 'RateLimit' && name === 'unit'
        ? { ...one, unit: value as CalendarUnit, windowMs: calendarWindowMs[value as CalendarUnit] }
        : withField(one, name, value)
  return { ...level, strategies: level.strategies.map((one, index) => (index === at ? changed(one) : one)) }
}

type RateLimit = Extract<StrategyTemplate, { strategy: 'RateLimit' }>
type CalendarUnit = NonNullable<RateLimit['unit']>

/** What each unit of a calendar comes to as a window. */
const calendarWindowMs = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_592_000_000 } as const
export const calendarUnits = Object.keys(calendarWindowMs) as CalendarUnit[]

/** Whether accesses may come at once beyond the rate, or wait. */
export function hasBurst(algorithm: LimitAlgorithm): boolean {
  return ['tokenBucket', 'leakyBucket', 'leakyQueue', 'gcra'].includes(algorithm)
}

/** Another algorithm takes its own parameters with it: the hub refuses those of another one. */
function withAlgorithm({ burst, unit, timeZone, ...limit }: RateLimit, algorithm: LimitAlgorithm): RateLimit {
  if (algorithm === 'calendarWindow') {
    const whole = unit ?? 'day'
    return { ...limit, algorithm, unit: whole, timeZone: timeZone ?? 'UTC', windowMs: calendarWindowMs[whole] }
  }
  const windowMs = limit.algorithm === 'calendarWindow' ? templates.RateLimit.windowMs : limit.windowMs
  return { ...limit, algorithm, windowMs, ...(burst !== undefined && hasBurst(algorithm) && { burst }) }
}

/** Hot by what the key costs its node: such a level has no number of its own. */
export function withAuto(level: RuleLevel, isAuto: boolean): RuleLevel {
  const { strategies } = level
  if (!isAuto) return { ...newLevel(1000), strategies }
  return { auto: true, measure: 'reads', enter: Number.MAX_SAFE_INTEGER, exit: Number.MAX_SAFE_INTEGER, strategies }
}

/** The part of the processes that has the rule; undefined: all of them. */
export function withRollout(rule: Rule, percent: number | undefined): Rule {
  // Whoever sets a part looked at why the last one was stopped.
  const { stopped: _, ...rest } = rule.rollout ?? { percent: 100 }
  return withField(rule, 'rollout', percent === undefined ? undefined : { ...rest, percent })
}

export function withRolloutField(rule: Rule, name: 'steps' | 'stepMs', value: unknown): Rule {
  return rule.rollout === undefined ? rule : { ...rule, rollout: withField(rule.rollout, name, value) }
}

/** `10, 50, 100` while it is typed: what is no number yet is left out; nothing is no steps. */
export function stepsIn(text: string): number[] | undefined {
  const steps = text.split(/[\s,，]+/).flatMap((part) => (/^\d+$/.test(part) ? [Number(part)] : []))
  return steps.length === 0 ? undefined : steps
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
