import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { PolicyError } from '../errors.ts'
import { calendarWindow } from '../spec/specs.ts'
import { parseCondition, writeCondition } from './condition.ts'
import { named } from './named.ts'
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

/** How dict files are read; tests pass their own. */
export type ReadText = (path: string) => string

const sections = ['dicts', 'rules', 'result', 'options'] as const
type Section = (typeof sections)[number]

/**
 * Parses a policy file: `[dicts]` of `name : path`, `[rules]` of `rule : [method] [conditions] [values] [result]`,
 * `[result]` of `number : {json}`, and `[options]` with `timeZone : name`. Throws the first mistake with file:line.
 */
export function parsePolicyText(text: string, file = 'policy', readText: ReadText = readFromDisk): Policy {
  let section: Section | undefined
  let timeZone = defaultTimeZone
  const dicts = named<PolicyDict>()
  const results: Record<number, ResultRow> = { ...defaultResults }
  const rules: { rule: PolicyRule; line: number }[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1
    const trimmed = raw.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    try {
      const heading = /^\[(\w+)\]$/.exec(trimmed)
      if (heading !== null) {
        section = sections.find((name) => name === heading[1]!.toLowerCase())
        if (section === undefined)
          throw new Error(`[${heading[1]}] is not a section; the sections are ${sections.join(', ')}`)
        continue
      }
      const colon = trimmed.indexOf(':')
      if (section === undefined || colon < 1) throw new Error(`"${trimmed}" is not "name : value" within a section`)
      const name = trimmed.slice(0, colon).trim()
      const value = trimmed.slice(colon + 1).trim()
      if (section === 'dicts') dicts[name] = readDict(value, file, readText)
      else if (section === 'result') results[resultNumber(name)] = parseResult(value)
      else if (section === 'rules') {
        if (name !== 'rule') throw new Error(`"${name}" found where "rule" should be`)
        rules.push({ rule: parseRule(value), line })
      } else if (name === 'timeZone') timeZone = knownTimeZone(value)
      else throw new Error(`"${name}" is not an option; the only one is timeZone`)
    } catch (error) {
      throw new PolicyError(file, line, (error as Error).message)
    }
  }
  // As left by an editor that is just writing the file, or sent by a client that could not read it.
  if (section === undefined)
    throw new PolicyError(file, 1, 'the policy is empty; one without rules consists of the line [rules]')
  for (const { rule, line } of rules) {
    const problem = ruleProblem(rule, results, dicts)
    if (problem !== undefined) throw new PolicyError(file, line, problem)
  }
  return { timeZone, dicts, results, rules: rules.map(({ rule }) => rule) }
}

/**
 * Writes a policy as a file; dicts are written as the names of their files. Values that a file cannot express (with a
 * comma, semicolon or bracket) are refused, because another policy would be read from it.
 */
export function writePolicyText(policy: Policy): string {
  const lines = ['[options]', `timeZone : ${policy.timeZone}`, '', '[dicts]']
  for (const [name, dict] of Object.entries(policy.dicts)) lines.push(`${name} : ${dict.file ?? `${name}.dat`}`)
  lines.push('', '[rules]')
  for (const rule of policy.rules) {
    const line = writeRule(rule)
    if (!isReadAs(line, rule)) {
      const sentence = 'its conditions cannot be written as a rule file; keep it as YAML or JSON'
      throw new PolicyError(`rule ${rule.returnCode}`, undefined, sentence)
    }
    lines.push(line)
  }
  lines.push('', '[result]')
  for (const [number, result] of Object.entries(policy.results)) lines.push(`${number} : ${JSON.stringify(result)}`)
  return `${lines.join('\n')}\n`
}

/** Writes a rule as its line. */
export function writeRule(rule: PolicyRule): string {
  const values = [`time=${rule.timeSeconds}`, `count=${rule.count}`]
  for (const name of ['base', 'erase1', 'erase2'] as const) if (rule[name] > 0) values.push(`${name}=${rule[name]}`)
  const result = [`result=${rule.result}`, `return=${rule.returnCode}`]
  if (rule.shadow) result.push('shadow=1')
  const conditions = rule.conditions.map(writeCondition).join('; ')
  return `rule : [${rule.method}] [${conditions}] [${values.join('; ')}] [${result.join('; ')}]`
}

function isReadAs(line: string, rule: PolicyRule): boolean {
  if (/[\r\n]/.test(line)) return false
  try {
    return isDeepStrictEqual(parseRule(line.slice(line.indexOf(':') + 1).trim()), rule)
  } catch {
    return false
  }
}

function parseRule(text: string): PolicyRule {
  const parts = /^\[([^\]]*)\]\s*\[(.*)\]\s*\[([^[\]]*)\]\s*\[([^[\]]*)\]$/.exec(text)
  if (parts === null) throw new Error('write a rule as "[method] [conditions] [values] [result]"')
  const method = parts[1]!.trim()
  if (!['direct', 'count', 'base', 'leak'].includes(method)) {
    throw new Error(`"${method}" is not a method; use direct, count, base or leak`)
  }
  const values = parseNumbers(parts[3]!, ['time', 'count', 'base', 'erase1', 'erase2'])
  const result = parseNumbers(parts[4]!, ['result', 'return', 'shadow'])
  for (const name of ['result', 'return']) if (result[name] === undefined) throw new Error(`${name}= is missing`)
  if (method !== 'direct' && values['count'] === undefined) throw new Error('count= is missing (0 is unlimited)')
  return {
    method: method as RuleMethod,
    conditions: entries(parts[2]!).map(parseCondition),
    timeSeconds: values['time'] ?? 0,
    count: values['count'] ?? 0,
    base: values['base'] ?? 0,
    erase1: values['erase1'] ?? 0,
    erase2: values['erase2'] ?? 0,
    result: result['result']!,
    returnCode: result['return']!,
    shadow: (result['shadow'] ?? 0) !== 0,
  }
}

function entries(text: string): string[] {
  return text
    .split(';')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

function parseNumbers(text: string, names: readonly string[]): Record<string, number> {
  const numbers = named<number>()
  for (const entry of entries(text)) {
    const match = /^(\w+)\s*=\s*(\d+)$/.exec(entry)
    if (match === null || !names.includes(match[1]!)) {
      throw new Error(`"${entry}" is not one of ${names.map((name) => `${name}=number`).join(', ')}`)
    }
    numbers[match[1]!] = Number(match[2])
  }
  return numbers
}

/** The number of a result row; throws a message. */
export function resultNumber(name: string): number {
  if (!/^\d{1,9}$/.test(name)) throw new Error(`"${name}" is not a result number`)
  return Number(name)
}

/** Parses a row of the results; its field names may begin with a small letter. */
export function parseResult(value: string): ResultRow {
  const row: unknown = JSON.parse(value)
  if (typeof row !== 'object' || row === null || typeof (row as { Ret_type?: unknown }).Ret_type !== 'number') {
    throw new Error('a result must be a JSON object with a number Ret_type')
  }
  return row as ResultRow
}

/** Validates a time zone; throws a message. */
export function knownTimeZone(timeZone: string): string {
  return calendarWindow({ limit: 1, unit: 'day', timeZone }).timeZone
}

/** Reads a dict file, one value per line; throws a message. */
export function readDict(path: string, policyFile: string, readText: ReadText): PolicyDict {
  const place = isAbsolute(path) ? path : join(dirname(policyFile), path)
  let text: string
  try {
    text = readText(place)
  } catch (error) {
    throw new Error(`the dict file ${path} cannot be read: ${(error as Error).message}`)
  }
  const values: string[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const value = line.trim()
    if (value === '' || value.startsWith('#')) continue
    const problem = dictProblem({ file: path, values: [value] })
    if (problem !== undefined) throw new Error(`the dict file ${path}, line ${index + 1}: ${problem}`)
    values.push(value)
  }
  return { file: path, values }
}

/** Reads a text file. */
export function readFromDisk(path: string): string {
  return readFileSync(path, 'utf8')
}
