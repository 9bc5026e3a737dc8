/** What kind of value a key holds. */
export type RedisType = 'string' | 'list' | 'set' | 'zset' | 'hash' | 'stream' | 'module'

/** All types that a finder distinguishes, in table order. */
export const redisTypes: readonly RedisType[] = ['string', 'list', 'set', 'zset', 'hash', 'stream', 'module']

/** One key of a finding. Which fields are present depends on how it was found. */
export interface FoundKey {
  /** The key, with everything but printable text escaped (see `escapeKey`). */
  readonly key: string
  readonly database?: number
  /** `host:port` of its server. */
  readonly node?: string
  readonly slot?: number
  readonly type?: RedisType
  readonly encoding?: string
  /** Memory of key and value. */
  readonly bytes?: number
  /** Members, fields, entries; 1 for a string. */
  readonly elements?: number
  /** Length of the longest single element. */
  readonly largestElementBytes?: number
  /** Milliseconds until it expires; absent if it never does. */
  readonly ttlMs?: number
  /** Fields of a hash that expire on their own. */
  readonly fieldsWithTtl?: number
  /** Seconds since the last access, by the server's LRU clock. */
  readonly idleSeconds?: number
  /** The server's logarithmic access counter, 0 to 255. */
  readonly frequency?: number
  /** Accesses seen. */
  readonly accesses?: number
  /** How many of those were writes. */
  readonly writes?: number
  /** Accesses a second, measured or estimated. */
  readonly accessesPerSecond?: number
  /** Standard error of an estimate, as a share of it. */
  readonly relativeError?: number
  /** Its share of everything that was seen, 0 to 1. */
  readonly share?: number
  /** Microseconds of server CPU time. */
  readonly cpuMicroseconds?: number
  /** Bytes on the network, in both directions or as the method says. */
  readonly networkBytes?: number
  /** The commands that touched it most, with their counts. */
  readonly commands?: Readonly<Record<string, number>>
}
