import { type KeyEffect, keyText } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'

/**
 * The effect of a hot key's strategy since its counters started, under the key's outside name; undefined if there was
 * none.
 */
export function keyEffect(redisClusterId: string, outside: string, hot: HotKey): KeyEffect | undefined {
  const { localHits, redisReads, copyReads, bytesSaved, combined, loadCount, loadMs, staleMs } = hot
  const limited = hot.limit?.limited ?? 0
  if (localHits + redisReads + copyReads + limited + combined === 0 && staleMs === undefined) return undefined
  return {
    redisClusterId,
    key: keyText(outside),
    localHits,
    redisReads,
    bytesSaved,
    ...(loadCount > 0 && { readMs: loadMs / loadCount }),
    limited,
    ...(copyReads > 0 && { copyReads }),
    ...(combined > 0 && { combined }),
    errors: 0,
    ruleId: hot.handling.ruleId,
    ...(staleMs !== undefined && { staleMs }),
  }
}
