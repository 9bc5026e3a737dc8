import { defaultLocalCache, limitAlgorithms, limitScopes } from '../strategy/strategy.ts'
import { FieldReader } from './field-reader.ts'
import { ruleFailure } from './parse-pattern.ts'
import type { StrategyTemplate } from './rule.ts'

const names = ['LocalCache', 'RedundantKeys', 'RateLimit', 'Combine', 'Observe'] as const

/** A strategy as a user writes it: its name, or an object with `strategy` and whatever differs from the defaults. */
export function parseStrategy(value: unknown, path: string): StrategyTemplate {
  const isName = typeof value === 'string'
  const holder = isName ? { strategy: value } : value
  // The path of a bare name is the field itself: `strategy`, not `strategy.strategy`.
  const failure = (field: string, message: string) =>
    isName ? ruleFailure(path, message.replaceAll(`${path}.strategy`, path)) : ruleFailure(field, message)
  const fields: FieldReader = new FieldReader(
    holder,
    path,
    failure,
    `one of ${names.join(', ')}, or an object with strategy`,
  )
  const name = fields.choice('strategy', names, undefined)
  if (name === undefined) fields.fail('strategy', `${fields.at('strategy')} is missing: one of ${names.join(', ')}`)
  const strategy = readers[name](fields)
  fields.end()
  return strategy
}

const readers: Record<(typeof names)[number], (fields: FieldReader) => StrategyTemplate> = {
  LocalCache(fields) {
    const maxStalenessMs = fields.number('maxStalenessMs', { min: 1, max: 86_400_000 }, undefined)
    return {
      strategy: 'LocalCache',
      cacheSize: fields.number('cacheSize', { min: 1, max: 10_000_000, isInteger: true }, defaultLocalCache.cacheSize),
      maxBytes: fields.number('maxBytes', { min: 1024, max: 2 ** 40, isInteger: true }, defaultLocalCache.maxBytes),
      expireTime: fields.number('expireTime', { min: 0.001, max: 86_400 * 30 }, defaultLocalCache.expireTime),
      expireStrategy: fields.choice(
        'expireStrategy',
        ['LRU', 'LFU', 'SIEVE', 'S3-FIFO'],
        defaultLocalCache.expireStrategy,
      ),
      consistent: fields.flag('consistent', defaultLocalCache.consistent),
      ...(maxStalenessMs !== undefined && { maxStalenessMs }),
    }
  },

  RedundantKeys(fields) {
    const template = fields.text('template', '{key}_{n}')
    if (!template.includes('{key}') || !template.includes('{n}')) {
      fields.fail('template', `${fields.at('template')} is "${template}"; it must contain {key} and {n}`)
    }
    const copiesPerNode = fields.number('copiesPerNode', { min: 1, max: 64, isInteger: true }, undefined)
    const ttl = fields.choice('ttl', ['renewed', 'key'], 'renewed')
    return {
      strategy: 'RedundantKeys',
      copyCount: fields.number('copyCount', { min: 1, max: 1024, isInteger: true }, 4),
      template,
      ttlJitterMs: fields.number('ttlJitterMs', { min: 0, max: 3_600_000 }, 500),
      ...(copiesPerNode !== undefined && { copiesPerNode }),
      ...(ttl !== 'renewed' && { ttl }),
    }
  },

  RateLimit(fields: FieldReader) {
    const limit = fields.number('limit', { min: 1, max: 1e12 }, undefined)
    if (limit === undefined)
      fields.fail('limit', `${fields.at('limit')} is missing: accesses per window, over all processes`)
    const algorithm = fields.choice('algorithm', limitAlgorithms, 'tokenBucket')
    const isCalendar = algorithm === 'calendarWindow'
    const burst = fields.number('burst', { min: 1, max: 1e12 }, undefined)
    const hasBurst = ['tokenBucket', 'leakyBucket', 'leakyQueue', 'gcra'].includes(algorithm)
    if (burst !== undefined && !hasBurst) fields.fail('burst', `${fields.at('burst')}: ${algorithm} has no burst`)
    const unit = fields.choice('unit', ['hour', 'day', 'week', 'month'], isCalendar ? 'day' : undefined)
    const timeZone = fields.text('timeZone', isCalendar ? 'UTC' : '')
    if (!isCalendar && (unit !== undefined || timeZone !== ''))
      fields.fail('unit', `${fields.at('unit')} and timeZone only apply to calendarWindow`)
    if (isCalendar && !isTimeZone(timeZone))
      fields.fail(
        'timeZone',
        `${fields.at('timeZone')} is "${timeZone}"; it must be an IANA name such as Asia/Shanghai`,
      )
    return {
      strategy: 'RateLimit',
      algorithm,
      limit,
      windowMs: fields.number('windowMs', { min: 1, max: 31 * 86_400_000 }, isCalendar ? unitMs[unit!] : 1000),
      ...(burst !== undefined && { burst }),
      ...(isCalendar && { unit: unit!, timeZone }),
      onLimit: fields.choice('onLimit', ['reject', 'wait', 'stale'], 'reject'),
      scope: fields.choice('scope', limitScopes, 'process'),
    }
  },

  Combine: (fields) => ({
    strategy: 'Combine',
    maxCombined: fields.number('maxCombined', { min: 2, max: 65_536, isInteger: true }, 1024),
  }),

  Observe: () => ({ strategy: 'Observe' }),
}

const dayMs = 86_400_000
/** Roughly how long a unit is, for refusals and forecasts. */
const unitMs = { hour: 3_600_000, day: dayMs, week: 7 * dayMs, month: 30 * dayMs } as const

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
