import { defaultLocalCache } from '../strategy/strategy.ts'
import { FieldReader } from './field-reader.ts'
import { ruleFailure } from './parse-pattern.ts'
import type { StrategyTemplate } from './rule.ts'

const names = ['LocalCache', 'RedundantKeys', 'RateLimit', 'Observe'] as const

/** A strategy as a user writes it: its name, or an object with `strategy` and what differs from the defaults. */
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
      fields.fail('template', `${fields.at('template')} is "${template}"; it must hold {key} and {n}`)
    }
    return {
      strategy: 'RedundantKeys',
      copyCount: fields.number('copyCount', { min: 1, max: 1024, isInteger: true }, 4),
      template,
      ttlJitterMs: fields.number('ttlJitterMs', { min: 0, max: 3_600_000 }, 500),
    }
  },

  RateLimit(fields: FieldReader) {
    const limit = fields.number('limit', { min: 1, max: 1e12 }, undefined)
    if (limit === undefined)
      fields.fail('limit', `${fields.at('limit')} is missing: accesses a window over all processes`)
    return {
      strategy: 'RateLimit',
      algorithm: fields.choice('algorithm', ['tokenBucket', 'fixedWindow', 'slidingWindow', 'gcra'], 'tokenBucket'),
      limit,
      windowMs: fields.number('windowMs', { min: 1, max: 86_400_000 }, 1000),
      onLimit: fields.choice('onLimit', ['reject', 'wait', 'stale'], 'reject'),
      scope: fields.choice('scope', ['process', 'shared'], 'process'),
    }
  },

  Observe: () => ({ strategy: 'Observe' }),
}
