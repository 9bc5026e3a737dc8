import { Calendar } from '../calendar/calendar.ts'
import { PolicyError } from '../errors.ts'
import { escapeSegment } from '../redis/limit-keys.ts'
import { compileCondition, compileValues, type Matcher } from './condition.ts'
import { writeRule } from './parse-policy.ts'
import { dictProblem, type Policy, type PolicyDict, type PolicyRule, type ResultRow, ruleProblem } from './policy.ts'

/** The parameters of a call. */
export type CallParameters = Readonly<Record<string, string | undefined>>

/** A prepared answer: the row with the rule's number and the policy's version, also as JSON. */
export interface PreparedAnswer {
  readonly row: ResultRow
  readonly json: string
  readonly isDenied: boolean
}

/** A rule ready to be matched. */
export class CompiledRule {
  readonly rule: PolicyRule
  /** Its answer if it decides. */
  readonly answer: PreparedAnswer
  /** Calls it applied to, and how many of them exceeded it. */
  readonly counts = { applied: 0, over: 0 }
  readonly #tests: readonly { readonly key: string; readonly matches: Matcher }[]
  readonly #countedBy: readonly string[]
  readonly #identity: string

  constructor(rule: PolicyRule, identity: string, answer: PreparedAnswer, dicts: ReadonlyMap<string, Matcher>) {
    this.rule = rule
    this.answer = answer
    this.#tests = rule.conditions.map((condition) => ({
      key: condition.key,
      matches: compileCondition(condition, dicts),
    }))
    const counted = rule.conditions.filter(({ together }) => !together)
    this.#countedBy = [...new Set(counted.map(({ key }) => key))].sort()
    this.#identity = identity
  }

  applies(parameters: CallParameters): boolean {
    for (const { key, matches } of this.#tests) {
      const value = textOf(parameters, key)
      if (value === undefined || value === '' || !matches(value)) return false
    }
    return true
  }

  /** The name of the counter of a call: escaped, so that no value can be mistaken for two. */
  counterKey(parameters: CallParameters): string {
    let key = this.#identity
    for (const name of this.#countedBy) key += `:${escapeSegment(textOf(parameters, name)!)}`
    return key
  }
}

/** A parameter's value; inherited properties do not count. */
function textOf(parameters: CallParameters, name: string): string | undefined {
  return Object.hasOwn(parameters, name) ? parameters[name]?.trim() : undefined
}

/**
 * Identifies a rule's counters: everything that determines what they count. They survive a changed limit, result or
 * feedback, even across a reload; rules with different numbers never share counters, and otherwise identical rules are
 * distinguished by their order.
 */
function identityOf(rule: PolicyRule): string {
  const text = writeRule({ ...rule, count: 0, erase1: 0, erase2: 0, result: 0, shadow: false })
  let digest = 0xcbf29ce484222325n
  for (const letter of text) {
    digest = BigInt.asUintN(64, (digest ^ BigInt(letter.codePointAt(0)!)) * 0x100000001b3n)
  }
  return `r${rule.returnCode}.${digest.toString(36)}`
}

function compileDict(name: string, dict: PolicyDict): Matcher {
  const problem = dictProblem(dict)
  if (problem !== undefined) throw new PolicyError(`dict ${name}`, undefined, problem)
  return compileValues(dict.values)
}

/** A policy ready to decide, under its version. */
export class CompiledPolicy {
  readonly policy: Policy
  readonly version: number
  readonly rules: readonly CompiledRule[]
  readonly days: Calendar
  /** The answers if no rule applies, and if some apply but none is over. */
  readonly unmatched: PreparedAnswer
  readonly passed: PreparedAnswer

  constructor(policy: Policy, version: number) {
    this.policy = policy
    this.version = version
    this.days = new Calendar('day', policy.timeZone)
    const dicts = new Map(Object.entries(policy.dicts).map(([name, dict]) => [name, compileDict(name, dict)]))
    const alike = new Map<string, number>()
    this.rules = policy.rules.map((rule) => {
      const problem = ruleProblem(rule, policy.results, policy.dicts)
      if (problem !== undefined) throw new PolicyError(`rule ${rule.returnCode}`, undefined, problem)
      const identity = identityOf(rule)
      const before = alike.get(identity) ?? 0
      alike.set(identity, before + 1)
      const answer = this.#prepare(policy.results[rule.result]!, rule.returnCode)
      return new CompiledRule(rule, before === 0 ? identity : `${identity}.${before}`, answer, dicts)
    })
    this.unmatched = this.#prepare(policy.results[0]!, 0)
    this.passed = this.#prepare(policy.results[1]!, 0)
  }

  #prepare(result: ResultRow, returnCode: number): PreparedAnswer {
    const row = { ...result, Ret_code: returnCode, Version: this.version }
    return { row, json: JSON.stringify(row), isDenied: result.Ret_type >= 2 }
  }
}
