/** The order in which a full local cache lets entries go. */
export type ExpireStrategy = 'LRU' | 'LFU' | 'SIEVE' | 'S3-FIFO'

/** Serve the key's reads from the memory of each process. */
export interface LocalCacheStrategy {
  readonly strategy: 'LocalCache'
  /** Entries that a process keeps under this strategy. */
  readonly cacheSize: number
  /** Bytes that a process keeps under this strategy. */
  readonly maxBytes: number
  /** Seconds that a value may be served; the key's own TTL may only shorten it. */
  readonly expireTime: number
  readonly expireStrategy: ExpireStrategy
  /** False: no watcher, a value is served until its TTL. */
  readonly consistent: boolean
  /** A value is bypassed once its observed staleness may exceed this; undefined: the watcher's own promise. */
  readonly maxStalenessMs?: number
}

/** Spread the key's reads over copies on several nodes. */
export interface RedundantKeysStrategy {
  readonly strategy: 'RedundantKeys'
  /** The names of the copies; each process reads one at random. */
  readonly copies: readonly string[]
  /** A copy's TTL is the key's plus a random part up to this; 0 where a copy must not outlive its key. */
  readonly ttlJitterMs: number
}

/** Let only so many accesses of the key through. */
export interface RateLimitStrategy {
  readonly strategy: 'RateLimit'
  readonly algorithm: 'tokenBucket' | 'fixedWindow' | 'slidingWindow' | 'gcra'
  /** Accesses a window, over all processes. */
  readonly limit: number
  readonly windowMs: number
  /** What a refused access gets. */
  readonly onLimit: 'reject' | 'wait' | 'stale'
  /** `process`: each takes its share of the limit; `shared`: exact, counted in Redis. */
  readonly scope: 'process' | 'shared'
}

/** Count and show only. */
export interface ObserveStrategy {
  readonly strategy: 'Observe'
}

/** What is done with a hot key. */
export type Strategy = LocalCacheStrategy | RedundantKeysStrategy | RateLimitStrategy | ObserveStrategy

export type StrategyName = Strategy['strategy']

/** One hot key's line in the strategy table. */
export interface TableEntry {
  readonly redisClusterId: string
  /** The key's name (see `keys/key-text.ts`). */
  readonly key: string
  readonly strategy: Strategy
  readonly ruleId: string
  /** Why, in words: "hot because rule `product`: 4,120/s over 1 s ≥ 1,000". */
  readonly reason: string
  /** When the entry was made, hub time in milliseconds. */
  readonly since: number
  /** When the entry lapses unless it is extended, hub time in milliseconds. */
  readonly until: number
  /** Acted on by this process only; others leave the key alone. @default all */
  readonly onlyInstance?: string
}

/** The map key of an entry: a key is hot per cluster. */
export function entryId(redisClusterId: string, key: string): string {
  return `${redisClusterId}\u0000${key}`
}

/** What a process may serve of a LocalCache strategy when a rule does not say. */
export const defaultLocalCache: LocalCacheStrategy = {
  strategy: 'LocalCache',
  cacheSize: 1024,
  maxBytes: 64 * 1024 * 1024,
  expireTime: 60,
  expireStrategy: 'S3-FIFO',
  consistent: true,
}

/** A RateLimit lapses after this long without a hub: a limit nobody can lift is worse than none. */
export const rateLimitLapseMs = 10_000
