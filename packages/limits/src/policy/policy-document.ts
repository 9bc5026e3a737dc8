import { type Document, isMap, isNode, isPair, isScalar, LineCounter, parseDocument, stringify, visit } from 'yaml'
import { PolicyError } from '../errors.ts'
import type { Condition } from './condition.ts'
import { named } from './named.ts'
import { knownTimeZone, parsePolicyText, type ReadText, readDict, readFromDisk, resultNumber } from './parse-policy.ts'
import {
  defaultResults,
  defaultTimeZone,
  dictProblem,
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

/** A condition in that form: a value, a list of values, or an operator. */
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

/**
 * Parses a policy in any format: YAML and JSON are recognised by their first characters or the file's name, anything
 * else is a rule file.
 */
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
  if (!isMap(document.contents)) throw new PolicyError(file, 1, 'a policy must be a map with rules')
  const at = <T>(path: (string | number)[], read: () => T): T => {
    try {
      return read()
    } catch (error) {
      throw new PolicyError(file, lineOf(...path), (error as Error).message)
    }
  }
  keepDigits(document)
  // Aliases that expand to too much are refused here.
  const root = at([], () => document.toJS() as Record<string, unknown>)
  for (const name of Object.keys(root)) {
    at([name], () => requireKnown(name, ['timeZone', 'dicts', 'rules', 'results']))
  }
  const timeZone = at(['timeZone'], () => knownTimeZone(String(root['timeZone'] ?? defaultTimeZone)))
  const dicts = named<PolicyDict>()
  for (const [name, value] of at(['dicts'], () => mapEntries('dicts', root['dicts']))) {
    dicts[name] = at(['dicts', name], () => toDict(value, file, readText))
  }
  const results: Record<number, ResultRow> = { ...defaultResults }
  for (const [name, value] of at(['results'], () => mapEntries('results', root['results']))) {
    at(['results', name], () => (results[resultNumber(name)] = toResult(value)))
  }
  const list = root['rules'] ?? []
  if (!Array.isArray(list)) throw new PolicyError(file, lineOf('rules'), 'rules must be a list')
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

/** Parameter values are text: numbers are kept as written, so that 2121914418680830963 and 007 keep their digits. */
function keepDigits(document: Document): void {
  const isUnder = (path: readonly unknown[], ...names: string[]) =>
    path.some((node) => isPair(node) && isScalar(node.key) && names.includes(String(node.key.value)))
  visit(document, {
    Scalar(_, node, path) {
      if (typeof node.value !== 'number' || node.source === undefined || !isUnder(path, 'when', 'dicts')) return
      if (!isUnder(path.slice(-1), 'above', 'below')) node.value = node.source
    },
  })
}

function mapEntries(name: string, value: unknown): [string, unknown][] {
  if (value === undefined || value === null) return []
  if (typeof value !== 'object' || Array.isArray(value)) throw new Error(`${name} must be a map`)
  return Object.entries(value)
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
  if (typeof value !== 'object' || value === null) throw new Error('a rule must be a map')
  for (const field of Object.keys(value)) requireKnown(field, ruleFields)
  if (!['direct', 'count', 'base', 'leak'].includes(value.method)) {
    throw new Error(`"${value.method}" is not a method; use direct, count, base or leak`)
  }
  if (value.method !== 'direct' && value.count === undefined) throw new Error('count is missing (0 is unlimited)')
  if (value.when === undefined || value.when === null) throw new Error('when is missing')
  const { shadow = false, erase = [] } = value
  if (typeof shadow !== 'boolean') throw new Error('shadow must be true or false')
  if (!Array.isArray(erase) || erase.length > 2) throw new Error('erase must be a list of one or two numbers')
  return {
    method: value.method,
    conditions: mapEntries('when', value.when).flatMap(([key, condition]) => toConditions(key, condition)),
    timeSeconds: value.seconds ?? 0,
    count: value.count ?? 0,
    base: value.base ?? 0,
    erase1: erase[0] ?? 0,
    erase2: erase[1] ?? 0,
    result: value.result,
    returnCode: value.return,
    shadow,
  }
}

/** The conditions on one parameter: one, or the two bounds of a range. */
function toConditions(key: string, value: unknown): Condition[] {
  if (key.trim() === '') throw new Error('a condition has no parameter')
  if (typeof value === 'object' && value !== null && 'above' in value && 'below' in value) {
    const { above, below, ...rest } = value
    return [toCondition(key, { above, ...rest }), toCondition(key, { below, ...rest })]
  }
  return [toCondition(key, value)]
}

function toCondition(key: string, value: unknown): Condition {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { key, op: 'is', values: toTexts(key, value), together: false }
  }
  const { together = false, ...rest } = value as Record<string, unknown>
  if (typeof together !== 'boolean') throw new Error(`together on ${key} must be true or false`)
  const [op, ...more] = Object.keys(rest)
  if (op === undefined || more.length > 0)
    throw new Error(`the condition on ${key} needs one of ${operators.join(', ')}`)
  requireKnown(op, operators)
  const operand = rest[op]
  if (op === 'any') {
    if (operand !== true) throw new Error(`any on ${key} must be true; otherwise leave the condition out`)
    return { key, op, together }
  }
  if (op === 'is' || op === 'not') return { key, op, values: toTexts(key, operand), together }
  if (op === 'in' || op === 'notIn') {
    if (typeof operand !== 'string') throw new Error(`${op} on ${key} needs the name of a dict`)
    return { key, op, dict: operand, together }
  }
  if (!Number.isSafeInteger(operand)) throw new Error(`${op} on ${key} needs a whole number within ±2^53`)
  return { key, op: op as 'below' | 'above', bound: operand as number, together }
}

/** One value or a list of them as trimmed strings: a call's values are trimmed too. */
function toTexts(name: string, value: unknown): string[] {
  return [value].flat().map((item) => {
    const text = ['string', 'number', 'boolean'].includes(typeof item) ? String(item).trim() : ''
    if (text === '') throw new Error(`${name} has a value that is not a string: ${JSON.stringify(item)}`)
    return text
  })
}

const operators = ['any', 'is', 'not', 'below', 'above', 'in', 'notIn']

function toDict(value: unknown, file: string, readText: ReadText): PolicyDict {
  if (Array.isArray(value)) {
    const dict = { file: undefined, values: toTexts('the dict', value) }
    const problem = dictProblem(dict)
    if (problem !== undefined) throw new Error(problem)
    return dict
  }
  const path = (value as { file?: unknown } | null)?.file
  if (typeof path !== 'string') throw new Error('a dict must be a list of values or { file: path }')
  return readDict(path, file, readText)
}

function toResult(value: unknown): ResultRow {
  if (typeof (value as { Ret_type?: unknown } | null)?.Ret_type !== 'number') {
    throw new Error('a result needs a number Ret_type')
  }
  return value as ResultRow
}

function requireKnown(name: string, known: readonly string[]): void {
  if (!known.includes(name)) throw new Error(`"${name}" is unknown; known are ${known.join(', ')}`)
}
