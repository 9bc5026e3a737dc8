import type { Strategy, TableEntry } from './strategy.ts'

/**
 * What of a table this version can carry out. Hubs, applications and stores are upgraded one after the other, so each of
 * them meets entries of a later version. The law that makes this safe: a later version adds a field only where ignoring it
 * is safe, and otherwise gives the strategy another name. So a field that is not known is ignored, and an entry whose
 * strategy is not known is left alone: its key goes to Redis as if it were cold.
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

/** As `isKnownStrategy`, of a strategy as a rule writes it. */
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
        ['tokenBucket', 'fixedWindow', 'slidingWindow', 'gcra'].includes(fields['algorithm'] as string) &&
        ['reject', 'wait', 'stale'].includes(fields['onLimit'] as string) &&
        ['process', 'shared'].includes(fields['scope'] as string)
      )
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
