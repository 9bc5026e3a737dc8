import { FieldReader } from './field-reader.ts'
import { parsePattern, readPattern, ruleFailure } from './parse-pattern.ts'
import { parseStrategy } from './parse-strategy.ts'
import { readRollout } from './rollout.ts'
import { type HeatMeasure, type Rule, type RuleLevel, ruleDefaults } from './rule.ts'

/** If a level has only a share, its count is one that no window reaches; Infinity would not survive JSON. */
const unreachable = Number.MAX_SAFE_INTEGER
const measures = ['accesses', 'reads', 'writes', 'bytes'] as const satisfies readonly HeatMeasure[]
/** The fields of a level; a rule with one level may have them at the top. */
const levelFields = [
  'auto',
  'threshold',
  'enter',
  'share',
  'enterShare',
  'exit',
  'exitShare',
  'measure',
  'shareOf',
] as const

/**
 * Parses a user's rule (JSON or YAML, already an object). Short form:
 *
 *     {id: 'product', prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache'}
 *
 * and in full, with levels; a `Rule` from the hub is accepted too. Throws `RuleInvalidError` with the field's path; an
 * unknown field is refused by name.
 */
export function parseRule(input: unknown): Rule {
  const fields = new FieldReader(input, '', ruleFailure, 'an object with id, a pattern and a threshold')
  const id = fields.text('id', '')
  if (!/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/.test(id)) {
    const given = fields.has('id') ? `"${id}"` : 'missing'
    fields.fail(
      'id',
      `id is ${given}; it must be 1 to 64 letters, digits and _ . : -, and begin with a letter or digit`,
    )
  }
  const maxStalenessMs = fields.number('maxStalenessMs', { min: 1, max: 86_400_000 }, undefined)
  const until = fields.number('until', { min: 0, max: Number.MAX_SAFE_INTEGER, isInteger: true }, undefined)
  const rollout = readRollout(fields, (value) => new FieldReader(value, 'rollout', ruleFailure, 'a percentage'))
  const rule: Rule = {
    id,
    mode: readMode(fields),
    priority: fields.number('priority', { min: -1e6, max: 1e6, isInteger: true }, ruleDefaults.priority),
    redisClusterId: fields.text(fields.oneOf(['redisClusterId', 'cluster']) ?? 'redisClusterId', '*'),
    serviceId: fields.text(fields.oneOf(['serviceId', 'service']) ?? 'serviceId', '*'),
    pattern: readPattern(fields),
    except: (fields.list('except') ?? []).map((item, index) => parsePattern(item, `except[${index}]`)),
    windowMs: fields.number('windowMs', { min: 1000, max: 3_600_000, isInteger: true }, ruleDefaults.windowMs),
    levels: readLevels(fields),
    minHoldMs: fields.number('minHoldMs', { min: 0, max: 86_400_000 }, ruleDefaults.minHoldMs),
    ...(maxStalenessMs !== undefined && { maxStalenessMs }),
    ...(until !== undefined && { until }),
    ...(rollout !== undefined && { rollout }),
  }
  fields.end()
  return rule
}

/** YAML reads a bare `on` or `off` as a string in version 1.2 and as a boolean in 1.1: both mean the mode. */
function readMode(fields: FieldReader): Rule['mode'] {
  const given = fields.raw('mode')
  if (typeof given === 'boolean') return given ? 'on' : 'off'
  return fields.choice('mode', ['off', 'shadow', 'on'], ruleDefaults.mode)
}

function readLevels(fields: FieldReader): RuleLevel[] {
  const given = fields.list('levels')
  if (given === undefined) return [readLevel(fields)]
  for (const name of [...levelFields, 'strategy', 'strategies']) {
    if (fields.has(name)) fields.fail(name, `${name} cannot be combined with levels; write it inside a level`)
  }
  if (given.length === 0 || given.length > 16) {
    fields.fail('levels', `levels has ${given.length} levels; it must have 1 to 16`)
  }
  const levels = given.map((item, index) => {
    const inner = new FieldReader(item, `levels[${index}]`, ruleFailure, 'an object with a threshold')
    const level = readLevel(inner)
    inner.end()
    return level
  })
  const auto = levels.findIndex((level) => level.auto === true)
  if (auto >= 0 && levels.length > 1) {
    fields.fail(
      'levels',
      `levels[${auto}] is auto; it must be the only level, since it has no number to compare with others`,
    )
  }
  levels.forEach((level, index) => {
    const lower = levels.slice(0, index).findLast((other) => other.measure === level.measure)
    if (lower === undefined || level.enter > lower.enter) return
    if (level.enter === unreachable && (level.enterShare ?? 0) > (lower.enterShare ?? 0)) return
    const field = `levels[${index}].enter`
    throw ruleFailure(field, `${field} is ${level.enter}; it must be above the level before it (${lower.enter})`)
  })
  return levels
}

function readLevel(fields: FieldReader): RuleLevel {
  if (isAutoLevel(fields)) return readAutoLevel(fields)
  const enterField = fields.oneOf(['threshold', 'enter'])
  const shareField = fields.oneOf(['share', 'enterShare'])
  if (enterField === undefined && shareField === undefined) {
    fields.fail('threshold', `${fields.at('threshold')} is missing: give a threshold, or a share from 0 to 1`)
  }
  const enter = fields.number(enterField ?? 'enter', { min: 1, max: unreachable }, unreachable)
  const enterShare = fields.number(shareField ?? 'enterShare', { min: 0.0001, max: 1 }, undefined)
  const exit = fields.number(
    'exit',
    { min: 0, max: enter },
    enter === unreachable ? enter : enter * ruleDefaults.exitShare,
  )
  const strategies = readStrategies(fields)
  const measure = fields.choice('measure', measures, 'accesses')
  const shareOf = fields.choice('shareOf', ['service', 'node'], 'service')
  const exitShare = fields.number('exitShare', { min: 0, max: enterShare ?? 1 }, undefined)
  const shareMinimum = fields.number('shareMinimum', { min: 1, max: 1e12 }, undefined)
  if (enterShare === undefined) {
    for (const name of ['exitShare', 'shareMinimum']) {
      if (fields.has(name)) fields.fail(name, `${fields.at(name)} needs a share too`)
    }
    return { measure, enter, exit, strategies }
  }
  return {
    measure,
    enter,
    exit,
    enterShare,
    exitShare: exitShare ?? enterShare * ruleDefaults.exitShare,
    shareMinimum: shareMinimum ?? ruleDefaults.shareMinimum,
    shareOf,
    strategies,
  }
}

function readStrategies(fields: FieldReader): RuleLevel['strategies'] {
  const strategyField = fields.oneOf(['strategy', 'strategies'])
  const strategies =
    strategyField === 'strategies'
      ? fields.list('strategies')!.map((item, index) => parseStrategy(item, `${fields.at('strategies')}[${index}]`))
      : [parseStrategy(fields.raw('strategy') ?? 'LocalCache', fields.at('strategy'))]
  if (strategies.length === 0)
    fields.fail('strategies', `${fields.at('strategies')} is empty; name at least one strategy`)
  return strategies
}

/** `threshold: auto` as users write it, `auto: true` as the hub returns it. */
function isAutoLevel(fields: FieldReader): boolean {
  const isWritten = ['threshold', 'enter'].some((name) => fields.raw(name) === 'auto')
  return fields.flag('auto', false) || isWritten
}

/** What costs a node is reads that it need not serve, so no number goes with it. */
function readAutoLevel(fields: FieldReader): RuleLevel {
  for (const name of ['threshold', 'enter', 'exit']) {
    const given = fields.raw(name)
    if (given === undefined || given === unreachable || (name !== 'exit' && given === 'auto')) continue
    fields.fail(name, `${fields.at(name)} cannot be combined with threshold: auto; the hub works it out`)
  }
  for (const name of ['share', 'enterShare', 'exitShare', 'shareMinimum', 'shareOf']) {
    if (fields.has(name)) fields.fail(name, `${fields.at(name)} cannot be combined with threshold: auto`)
  }
  if (fields.choice('measure', measures, 'reads') !== 'reads') {
    fields.fail(
      'measure',
      `${fields.at('measure')} cannot be combined with threshold: auto; it weighs reads against writes itself`,
    )
  }
  const strategies = readStrategies(fields)
  return { auto: true, measure: 'reads', enter: unreachable, exit: unreachable, strategies }
}
