import { type KeyEffect, keyText } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'

/** What a hot key's strategy did since its counters began, under the key's outside name; undefined where nothing did. */
export function keyEffect(redisClusterId: string, outside: string, hot: HotKey): KeyEffect | undefined {
  const { localHits, redisReads, copyReads, bytesSaved, loadCount, loadMs, staleMs } = hot
  const limited = hot.limit?.limited ?? 0
  if (localHits + redisReads + copyReads + limited === 0 && staleMs === undefined) return undefined
  return {
    redisClusterId,
    key: keyText(outside),
    localHits,
    redisReads,
    bytesSaved,
    ...(loadCount > 0 && { readMs: loadMs / loadCount }),
    limited,
    errors: 0,
    ...(staleMs !== undefined && { staleMs, ruleId: hot.handling.ruleId }),
  }
}
