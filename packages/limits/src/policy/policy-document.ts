import { isMap, isNode, LineCounter, parseDocument, stringify } from 'yaml'
import { PolicyError } from '../errors.ts'
import type { Condition } from './condition.ts'
import { named } from './named.ts'
import { knownTimeZone, parsePolicyText, type ReadText, readDict, readFromDisk } from './parse-policy.ts'
import {
  defaultResults,
  defaultTimeZone,
  type Policy,
  type PolicyDict,
  type PolicyRule,
  type ResultRow,
  type RuleMethod,
  ruleProblem,
} from './policy.ts'

/** A rule in the YAML and JSON form. */
interface RuleDocument {
  readonly return: number
  readonly method: RuleMethod
  readonly when: Readonly<Record<string, ConditionDocument>>
  readonly seconds?: number
  readonly count?: number
  readonly base?: number
  readonly erase?: readonly number[]
  readonly result: number
  readonly shadow?: boolean
}

/** A condition in that form: a value or a list of them, or one word that says what. */
type ConditionDocument =
  | string
  | number
  | readonly (string | number)[]
  | {
      readonly any?: true
      readonly is?: readonly (string | number)[]
      readonly not?: readonly (string | number)[]
      readonly below?: number
      readonly above?: number
      readonly in?: string
      readonly notIn?: string
      readonly together?: boolean
    }

/** Parses a policy of any form: YAML and JSON by their first letters or the file's name, else the rule file. */
export function parsePolicy(text: string, file = 'policy', readText: ReadText = readFromDisk): Policy {
  const isDocument =
    /\.(ya?ml|json)$/.test(file) || /^\s*\{/.test(text) || /^(timeZone|rules|dicts|results):/m.test(text)
  return isDocument ? parsePolicyDocument(text, file, readText) : parsePolicyText(text, file, readText)
}

/** Parses the YAML form (JSON is YAML too); mistakes are thrown with file:line. */
export function parsePolicyDocument(text: string, file = 'policy', readText: ReadText = readFromDisk): Policy {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter })
  const lineOf = (...path: (string | number)[]): number | undefined => {
    for (let length = path.length; length >= 0; length--) {
      const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
      if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line
    }
    return undefined
  }
  const problem = document.errors[0]
  if (problem !== undefined) throw new PolicyError(file, problem.linePos?.[0].line, problem.message.split('\n')[0]!)
  if (!isMap(document.contents)) throw new PolicyError(file, 1, 'a policy is a map with rules')
  const at = <T>(path: (string | number)[], read: () => T): T => {
    try {
      return read()
    } catch (error) {
      throw new PolicyError(file, lineOf(...path), (error as Error).message)
    }
  }
  // Aliases that unfold to too much are refused here.
  const root = at([], () => document.toJS() as Record<string, unknown>)
  for (const name of Object.keys(root)) {
    at([name], () => requireKnown(name, ['timeZone', 'dicts', 'rules', 'results']))
  }
  const timeZone = at(['timeZone'], () => knownTimeZone(String(root['timeZone'] ?? defaultTimeZone)))
  const dicts = named<PolicyDict>()
  for (const [name, value] of Object.entries((root['dicts'] ?? {}) as Record<string, unknown>)) {
    dicts[name] = at(['dicts', name], () => toDict(value, file, readText))
  }
  const results: Record<number, ResultRow> = { ...defaultResults }
  for (const [name, value] of Object.entries((root['results'] ?? {}) as Record<string, unknown>)) {
    results[Number(name)] = at(['results', name], () => toResult(value))
  }
  const list = root['rules'] ?? []
  if (!Array.isArray(list)) throw new PolicyError(file, lineOf('rules'), 'rules is a list')
  const rules = list.map((value: unknown, index) =>
    at(['rules', index], () => {
      const rule = toRule(value as RuleDocument)
      const wrong = ruleProblem(rule, results, dicts)
      if (wrong !== undefined) throw new Error(wrong)
      return rule
    }),
  )
  return { timeZone, dicts, results, rules }
}

/** Writes a policy in the YAML form, or as JSON. */
export function writePolicyDocument(policy: Policy, format: 'yaml' | 'json' = 'yaml'): string {
  const document = {
    timeZone: policy.timeZone,
    dicts: named(
      Object.entries(policy.dicts).map(([name, { file, values }]) => [name, file === undefined ? values : { file }]),
    ),
    rules: policy.rules.map(ruleDocument),
    results: policy.results,
  }
  return format === 'json' ? `${JSON.stringify(document, undefined, 2)}\n` : stringify(document)
}

function ruleDocument(rule: PolicyRule): RuleDocument {
  return {
    return: rule.returnCode,
    method: rule.method,
    when: whenDocument(rule.conditions),
    ...(rule.timeSeconds > 0 && { seconds: rule.timeSeconds }),
    ...(rule.method !== 'direct' && { count: rule.count }),
    ...(rule.base > 0 && { base: rule.base }),
    ...(rule.erase1 + rule.erase2 > 0 && { erase: [rule.erase1, rule.erase2] }),
    result: rule.result,
    ...(rule.shadow && { shadow: true }),
  }
}

/** Conditions by their parameter; the two bounds of one are one entry. */
function whenDocument(conditions: readonly Condition[]): Record<string, ConditionDocument> {
  const when = named<ConditionDocument>()
  for (const condition of conditions) {
    const before = when[condition.key]
    const document = conditionDocument(condition)
    when[condition.key] = before === undefined ? document : { ...(before as object), ...(document as object) }
  }
  return when
}

function conditionDocument(condition: Condition): ConditionDocument {
  const together = condition.together ? { together: true } : {}
  switch (condition.op) {
    case 'any':
      return { any: true, ...together }
    case 'is':
      return { is: condition.values, ...together }
    case 'not':
      return { not: condition.values, ...together }
    case 'below':
      return { below: condition.bound, ...together }
    case 'above':
      return { above: condition.bound, ...together }
    case 'in':
      return { in: condition.dict, ...together }
    case 'notIn':
      return { notIn: condition.dict, ...together }
  }
}

const ruleFields = ['return', 'method', 'when', 'seconds', 'count', 'base', 'erase', 'result', 'shadow']

function toRule(value: RuleDocument): PolicyRule {
  if (typeof value !== 'object' || value === null) throw new Error('a rule is a map')
  for (const field of Object.keys(value)) requireKnown(field, ruleFields)
  if (!['direct', 'count', 'base', 'leak'].includes(value.method)) {
    throw new Error(`"${value.method}" is no method; there are direct, count, base and leak`)
  }
  if (value.method !== 'direct' && value.count === undefined) throw new Error('count is missing (0 is unlimited)')
  if (typeof value.when !== 'object' || value.when === null) throw new Error('when is missing')
  return {
    method: value.method,
    conditions: Object.entries(value.when).flatMap(([key, condition]) => toConditions(key, condition)),
    timeSeconds: value.seconds ?? 0,
    count: value.count ?? 0,
    base: value.base ?? 0,
    erase1: value.erase?.[0] ?? 0,
    erase2: value.erase?.[1] ?? 0,
    result: value.result,
    returnCode: value.return,
    shadow: value.shadow ?? false,
  }
}

/** The conditions on one parameter: one, or the two bounds of a range. */
function toConditions(key: string, value: ConditionDocument): Condition[] {
  if (typeof value === 'object' && value !== null && 'above' in value && 'below' in value) {
    const { above, below, ...rest } = value
    return [toCondition(key, { above: above!, ...rest }), toCondition(key, { below: below!, ...rest })]
  }
  return [toCondition(key, value)]
}

function toCondition(key: string, value: ConditionDocument): Condition {
  if (typeof value !== 'object' || value === null) return { key, op: 'is', values: [String(value)], together: false }
  if (Array.isArray(value)) return { key, op: 'is', values: value.map(String), together: false }
  const { together = false, ...rest } = value as Exclude<ConditionDocument, string | number | readonly unknown[]>
  const [op, ...more] = Object.keys(rest)
  if (op === undefined || more.length > 0)
    throw new Error(`the condition on ${key} needs one of ${operators.join(', ')}`)
  requireKnown(op, operators)
  const operand = (rest as Record<string, unknown>)[op]
  if (op === 'any') return { key, op, together }
  if (op === 'is' || op === 'not') return { key, op, values: [operand].flat().map(String), together }
  if (op === 'in' || op === 'notIn') return { key, op, dict: String(operand), together }
  if (!Number.isSafeInteger(operand)) throw new Error(`${op} on ${key} needs a whole number`)
  return { key, op: op as 'below' | 'above', bound: operand as number, together }
}

const operators = ['any', 'is', 'not', 'below', 'above', 'in', 'notIn']

function toDict(value: unknown, file: string, readText: ReadText): PolicyDict {
  if (Array.isArray(value)) return { file: undefined, values: value.map(String) }
  const path = (value as { file?: unknown } | null)?.file
  if (typeof path !== 'string') throw new Error('a dict is a list of values or { file: path }')
  return readDict(path, file, readText)
}

function toResult(value: unknown): ResultRow {
  if (typeof (value as { Ret_type?: unknown } | null)?.Ret_type !== 'number') {
    throw new Error('a result needs a number Ret_type')
  }
  return value as ResultRow
}

function requireKnown(name: string, known: readonly string[]): void {
  if (!known.includes(name)) throw new Error(`"${name}" is not known here; there are ${known.join(', ')}`)
}
