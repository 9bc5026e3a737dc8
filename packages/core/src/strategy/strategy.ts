/** The eviction policy of a full local cache. */
export type ExpireStrategy = 'LRU' | 'LFU' | 'SIEVE' | 'S3-FIFO'

/** Serve the key's reads from the memory of each process. */
export interface LocalCacheStrategy {
  readonly strategy: 'LocalCache'
  /** Entries that a process may keep under this strategy. */
  readonly cacheSize: number
  /** Bytes that a process may keep under this strategy. */
  readonly maxBytes: number
  /** Seconds that a value may be served; the key's own TTL can only shorten this. */
  readonly expireTime: number
  readonly expireStrategy: ExpireStrategy
  /** False: no watcher; a value is served until its TTL. */
  readonly consistent: boolean
  /** A value is bypassed once it may be staler than this; undefined: whatever the watcher guarantees. */
  readonly maxStalenessMs?: number
}

/** Spread the key's reads over copies on several nodes. */
export interface RedundantKeysStrategy {
  readonly strategy: 'RedundantKeys'
  /** The names of the copies; each process reads one at random. */
  readonly copies: readonly string[]
  /** A copy's TTL is the key's plus a random part up to this; 0 if a copy must not outlive its key. */
  readonly ttlJitterMs: number
  /** This many copies for each node, named by `template`; `copies` is then for shields that do not know this field. */
  readonly copiesPerNode?: number
  readonly template?: string
  /**
   * `renewed`: a copy lives for seconds and is renewed while its refresher is alive. `key`: it gets its key's remaining
   * TTL plus the random part; for a key without a TTL, it is renewed all the same. @default 'renewed'
   */
  readonly ttl?: 'renewed' | 'key'
  /**
   * The names that the copies currently have in Redis, as reported by the processes that write them; undefined until
   * then. On a cluster they follow from the slot map and differ from `copies`. Shields compute them themselves.
   */
  readonly placed?: readonly string[]
}

/** How accesses are counted; see the guide to limits. */
export type LimitAlgorithm = (typeof limitAlgorithms)[number]

export const limitAlgorithms = [
  'tokenBucket',
  'fixedWindow',
  'slidingWindow',
  'slidingCounter',
  'slidingLog',
  'leakyBucket',
  'leakyQueue',
  'gcra',
  'calendarWindow',
] as const

/**
 * What is counted together. `process`: each process takes its share of the limit; `shared`: exact, in Redis. With
 * `-caller` each caller has its own limit, if the process knows who is calling (the proxy: the user, or the address if
 * there is no user); with `-service` each service has.
 */
export type LimitScope = (typeof limitScopes)[number]

export const limitScopes = ['process', 'shared', 'shared-service', 'process-caller', 'shared-caller'] as const

/** Let only this many accesses to the key through. */
export interface RateLimitStrategy {
  readonly strategy: 'RateLimit'
  readonly algorithm: LimitAlgorithm
  /** Accesses per window, over all processes. */
  readonly limit: number
  readonly windowMs: number
  /**
   * Accesses that may arrive at once, for algorithms that have a rate (tokenBucket, leakyBucket, gcra), or that may
   * wait, for leakyQueue. @default limit
   */
  readonly burst?: number
  /** For calendarWindow: hours, days, weeks or months. @default 'day' */
  readonly unit?: 'hour' | 'day' | 'week' | 'month'
  /** For calendarWindow: the time zone of the calendar. @default 'UTC' */
  readonly timeZone?: string
  /** What a refused access gets. */
  readonly onLimit: 'reject' | 'wait' | 'stale'
  readonly scope: LimitScope
}

/**
 * Merge increments of one counter that are in flight at the same time into one command; each caller gets its own value.
 */
export interface CombineStrategy {
  readonly strategy: 'Combine'
  /** Maximum number of increments in one command. */
  readonly maxCombined: number
}

/** Count and show only. */
export interface ObserveStrategy {
  readonly strategy: 'Observe'
}

/** What is done about a hot key. */
export type Strategy =
  | LocalCacheStrategy
  | RedundantKeysStrategy
  | RateLimitStrategy
  | CombineStrategy
  | ObserveStrategy

export type StrategyName = Strategy['strategy']

/** One hot key's line in the strategy table. */
export interface TableEntry {
  readonly redisClusterId: string
  /** The key's name (see `keys/key-text.ts`). */
  readonly key: string
  readonly strategy: Strategy
  readonly ruleId: string
  /** Why, as a sentence: "hot because rule `product`: 4,120/s over 1 s ≥ 1,000". */
  readonly reason: string
  /** When the entry was made, hub time in milliseconds. */
  readonly since: number
  /** When the entry lapses unless it is extended, hub time in milliseconds. */
  readonly until: number
  /** Only this process acts on it; others leave the key alone. @default all */
  readonly onlyInstance?: string
  /** Only this percentage of the processes act on it (`isInRollout`). @default 100 */
  readonly rollout?: number
}

/** The map key of an entry: a key is hot per cluster. */
export function entryId(redisClusterId: string, key: string): string {
  return `${redisClusterId}\u0000${key}`
}

/** The defaults of LocalCache. */
export const defaultLocalCache: LocalCacheStrategy = {
  strategy: 'LocalCache',
  cacheSize: 1024,
  maxBytes: 64 * 1024 * 1024,
  expireTime: 60,
  expireStrategy: 'S3-FIFO',
  consistent: true,
}

/** A RateLimit lapses after this long without a hub: a limit that nobody can lift is worse than none. */
export const rateLimitLapseMs = 10_000
