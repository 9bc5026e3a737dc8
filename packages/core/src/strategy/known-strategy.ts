import {
  type LimitAlgorithm,
  type LimitScope,
  limitAlgorithms,
  limitScopes,
  type Strategy,
  type TableEntry,
} from './strategy.ts'

/**
 * The part of a table that this version can carry out. Hubs, applications and stores are upgraded one after another, so
 * each of them meets entries of a later version. The convention that makes this safe: a later version only adds a field
 * if ignoring it is safe, and otherwise gives the strategy another name. So an unknown field is ignored, and an entry
 * with an unknown strategy is left alone: its key goes to Redis as if it were cold.
 */
export function isKnownEntry(value: unknown): value is TableEntry {
  if (!isObject(value)) return false
  const entry = value as TableEntry
  return (
    isText(entry.redisClusterId) &&
    isText(entry.key) &&
    isText(entry.ruleId) &&
    isNumber(entry.until) &&
    isKnownStrategy(entry.strategy)
  )
}

export function isKnownStrategy(value: unknown): value is Strategy {
  if (!isObject(value)) return false
  const strategy = value as Strategy
  if (strategy.strategy !== 'RedundantKeys') return isKnownTemplate(strategy)
  return Array.isArray(strategy.copies) && strategy.copies.every(isText) && isNumber(strategy.ttlJitterMs)
}

/** Like `isKnownStrategy`, for a strategy as written in a rule. */
export function isKnownTemplate(value: unknown): boolean {
  if (!isObject(value)) return false
  const fields = value as Record<string, unknown>
  const has = (names: readonly string[]) => names.every((name) => isNumber(fields[name]))
  switch (fields['strategy']) {
    case 'LocalCache':
      return (
        has(['cacheSize', 'maxBytes', 'expireTime']) &&
        ['LRU', 'LFU', 'SIEVE', 'S3-FIFO'].includes(fields['expireStrategy'] as string) &&
        typeof fields['consistent'] === 'boolean'
      )
    case 'RedundantKeys':
      return has(['copyCount', 'ttlJitterMs']) && isText(fields['template'])
    case 'RateLimit':
      return (
        has(['limit', 'windowMs']) &&
        limitAlgorithms.includes(fields['algorithm'] as LimitAlgorithm) &&
        ['reject', 'wait', 'stale'].includes(fields['onLimit'] as string) &&
        limitScopes.includes(fields['scope'] as LimitScope)
      )
    case 'Combine':
      return has(['maxCombined'])
    case 'Observe':
      return true
    default:
      return false
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}
