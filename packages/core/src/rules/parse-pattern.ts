import { describeValue } from '../errors/firebreak-error.ts'
import { FieldReader } from './field-reader.ts'
import { compilePattern } from './key-matcher.ts'
import type { KeyPattern } from './rule.ts'
import { RuleInvalidError } from './rule-error.ts'

/** The fields that name keys; a rule has exactly one of them. */
const patternFields = ['key', 'keys', 'prefix', 'suffix', 'glob', 'regex'] as const
const kinds = ['exact', 'prefix', 'suffix', 'glob', 'regex'] as const
const maxExactKeys = 10_000

export const ruleFailure = (field: string, message: string) => new RuleInvalidError(field, message)

/** The pattern of a rule: `pattern: {kind, …}` or one of the short fields `key`, `keys`, `prefix` …. */
export function readPattern(fields: FieldReader): KeyPattern {
  if (fields.has('pattern')) {
    const short = fields.oneOf(patternFields)
    if (short !== undefined) fields.fail(short, `${fields.at(short)} cannot be combined with pattern; give one of them`)
    return parsePattern(fields.raw('pattern'), fields.at('pattern'))
  }
  const given = fields.oneOf(patternFields)
  if (given === undefined) {
    const message = `${fields.at('pattern')} is missing: give one of ${patternFields.join(', ')}`
    fields.fail('pattern', message, patternFields)
  }
  return checked(readShort(fields, given), fields.at(given))
}

/** A pattern on its own: a glob as text, `{prefix: 'a'}`, or `{kind: 'prefix', prefix: 'a'}`. */
export function parsePattern(value: unknown, path: string): KeyPattern {
  if (typeof value === 'string') {
    if (value === '') throw ruleFailure(path, `${path} is empty; it must be a glob`)
    return checked({ kind: 'glob', glob: value }, path)
  }
  const fields: FieldReader = new FieldReader(value, path, ruleFailure, 'a glob, or an object such as {prefix: "a"}')
  const kind = fields.choice('kind', kinds, undefined)
  const given = fields.oneOf(patternFields)
  if (given === undefined)
    fields.fail(kind ?? 'prefix', `${path} names no keys: give one of ${patternFields.join(', ')}`)
  const pattern = readShort(fields, given)
  if (kind !== undefined && kind !== pattern.kind) {
    fields.fail('kind', `${fields.at('kind')} is "${kind}", but ${given} is given`)
  }
  fields.end()
  return checked(pattern, fields.at(given))
}

function readShort(fields: FieldReader, given: string): KeyPattern {
  switch (given) {
    case 'key':
      return { kind: 'exact', keys: [fields.text('key', '')] }
    case 'keys': {
      const keys = fields.list('keys')!
      if (keys.length === 0 || keys.length > maxExactKeys) {
        fields.fail('keys', `${fields.at('keys')} has ${keys.length} keys; it must have 1 to ${maxExactKeys}`)
      }
      return { kind: 'exact', keys: keys.map((key, index) => exactKey(key, `${fields.at('keys')}[${index}]`)) }
    }
    case 'prefix':
      return { kind: 'prefix', prefix: fields.text('prefix', '') }
    case 'suffix':
      return { kind: 'suffix', suffix: fields.text('suffix', '') }
    case 'glob':
      return { kind: 'glob', glob: fields.text('glob', '') }
    default:
      return { kind: 'regex', regex: fields.text('regex', '') }
  }
}

function exactKey(key: unknown, path: string): string {
  if (typeof key === 'string') return key
  throw ruleFailure(path, `${path} is ${describeValue(key)}; it must be a string`)
}

/** Compiled once here, so that an invalid expression is refused with its field and not discovered by a sensor. */
function checked(pattern: KeyPattern, path: string): KeyPattern {
  try {
    compilePattern(pattern)
    return pattern
  } catch (error) {
    throw ruleFailure(path, `${path}: ${(error as Error).message}`)
  }
}
