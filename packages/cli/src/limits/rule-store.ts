import { MemoryRuleStore, RedisRuleStore, type RuleStore } from '@firebreak/limits/policy'
import { ioredisOptions } from '@firebreak/redis'
import { Redis } from 'ioredis'

/** Where a rule service's counters are. */
export interface RuleStorePlace {
  /** @default in this process */
  readonly redis?: string | undefined
  readonly leakStorage?: 'list' | 'zset' | undefined
  readonly prefix?: string | undefined
}

/** Opens the store for a rule service's counters, and connects to its Redis in the background. */
export function openRuleStore(
  { redis, leakStorage = 'list', prefix }: RuleStorePlace,
  onError: (error: Error) => void,
): { readonly store: RuleStore; close(): void } {
  if (redis === undefined) return { store: new MemoryRuleStore(), close: () => {} }
  const client = new Redis(ioredisOptions(redis))
  client.on('error', onError)
  const store = new RedisRuleStore(client, { leakStorage, ...(prefix !== undefined && { prefix }) })
  return { store, close: () => client.disconnect() }
}
