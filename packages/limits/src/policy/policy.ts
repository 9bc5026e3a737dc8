import { type Condition, parseValue } from './condition.ts'
import { named } from './named.ts'

/** How a rule counts: not at all, in a window from its first call, so only after `base` in the day, or in the last seconds. */
export type RuleMethod = 'direct' | 'count' | 'base' | 'leak'

/** One rule of a policy. */
export interface PolicyRule {
  readonly method: RuleMethod
  readonly conditions: readonly Condition[]
  readonly timeSeconds: number
  /** 0 is unlimited. */
  readonly count: number
  readonly base: number
  /** How many entries a feedback takes back. */
  readonly erase1: number
  readonly erase2: number
  /** The result row to answer with. */
  readonly result: number
  /** The rule's number in answers. */
  readonly returnCode: number
  /** Counted and shown, but never decides. */
  readonly shadow: boolean
}

/** A result row: the answer. `Ret_type` of 2 and above means that the call is not admitted. */
export interface ResultRow {
  readonly Ret_type: number
  readonly [field: string]: unknown
}

/** A whole policy as data; dicts are given with their values. */
export interface Policy {
  readonly timeZone: string
  readonly dicts: Readonly<Record<string, PolicyDict>>
  readonly rules: readonly PolicyRule[]
  readonly results: Readonly<Record<number, ResultRow>>
}

/** A named list of values, and the file it came from. */
export interface PolicyDict {
  readonly file: string | undefined
  readonly values: readonly string[]
}

/** The default time zone for a policy's days. */
export const defaultTimeZone = 'Asia/Shanghai'

/** 100 years: beyond that, times in milliseconds are no longer exact. */
const maxTimeSeconds = 100 * 365.25 * 86_400

/** How many timestamps a leak rule's counter may hold. */
const maxLeakCount = 1_000_000

/** A time of this many seconds is a day of the calendar. */
export const daySeconds = 86_400

const row = (type: number, reason: string, errorNumber: number): ResultRow => ({
  Ret_type: type,
  Ret_code: 0,
  Err_no: errorNumber,
  Err_msg: '',
  Str_reason: reason,
  Need_vcode: 0,
  Vcode_len: 0,
  Vcode_type: 0,
  Other: '',
  Version: 0,
})

/** The rows of every policy: 0 no rule applies, 1 rules apply but none is over, 2 denied. */
export const defaultResults: Readonly<Record<number, ResultRow>> = {
  0: row(0, 'Allow', 0),
  1: row(1, 'Allow', 0),
  2: row(2, 'Deny', 10),
}

/** A policy without any rule. */
export const emptyPolicy: Policy = { timeZone: defaultTimeZone, dicts: named(), rules: [], results: defaultResults }

/** What is wrong with a rule, or undefined; `results` and `dicts` are those of its policy. */
export function ruleProblem(
  rule: PolicyRule,
  results: Readonly<Record<number, ResultRow>>,
  dicts: Readonly<Record<string, PolicyDict>>,
): string | undefined {
  for (const name of ['timeSeconds', 'count', 'base', 'erase1', 'erase2', 'result', 'returnCode'] as const) {
    if (!Number.isSafeInteger(rule[name]) || rule[name] < 0) return `${name} must be a whole number, 0 or more`
  }
  if (rule.timeSeconds > maxTimeSeconds) return `time is ${rule.timeSeconds} s; it must be at most 100 years`
  if (rule.method === 'leak' && rule.count > maxLeakCount) {
    return `count is ${rule.count}; a leak rule stores a time for each, so the maximum is ${maxLeakCount}`
  }
  if (rule.conditions.length === 0) return 'a rule needs at least one condition'
  if (rule.method !== 'direct' && rule.timeSeconds === 0) return `a ${rule.method} rule needs time= in seconds`
  if (rule.method === 'base' && rule.base === 0) return 'a base rule needs base='
  if (!Object.hasOwn(results, rule.result)) return `result=${rule.result} is not in [result]`
  for (const condition of rule.conditions) {
    if ((condition.op === 'in' || condition.op === 'notIn') && !Object.hasOwn(dicts, condition.dict)) {
      return `the dict ${condition.dict} is not in [dicts]`
    }
  }
  for (const condition of rule.conditions) {
    const problem = 'values' in condition ? valuesProblem(condition.values) : undefined
    if (problem !== undefined) return `the condition on ${condition.key}: ${problem}`
  }
  const seen = new Map<string, Condition['op'][]>()
  for (const { key, op } of rule.conditions) {
    const before = seen.get(key) ?? []
    // A lower and an upper bound are one range; anything else of one parameter is a mistake.
    const isOtherBound = before.length === 1 && new Set([...before, op, 'below', 'above']).size === 2
    if (before.length > 0 && !(isOtherBound && before[0] !== op))
      return `the parameter ${key} appears in two conditions`
    seen.set(key, [...before, op])
  }
  return boundsProblem(rule.conditions)
}

/** What is wrong with a dict, or undefined; an empty dict matches nobody. */
export function dictProblem({ values }: PolicyDict): string | undefined {
  return values.length === 0 ? undefined : valuesProblem(values)
}

/** What is wrong with the first malformed value, or undefined. */
function valuesProblem(values: readonly string[]): string | undefined {
  if (values.length === 0) return 'it has no value'
  for (const value of values) {
    try {
      parseValue(value)
    } catch (error) {
      return (error as Error).message
    }
  }
  return undefined
}

function boundsProblem(conditions: readonly Condition[]): string | undefined {
  for (const above of conditions) {
    if (above.op !== 'above') continue
    for (const below of conditions) {
      if (below.op !== 'below' || below.key !== above.key || below.bound - above.bound > 1) continue
      return `not a whole number ${above.key} is above ${above.bound} and below ${below.bound}`
    }
  }
  return undefined
}
