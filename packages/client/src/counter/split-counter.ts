import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { type RedisClient, toRedis } from '@firebreak/redis'

/** How a counter is split. */
export interface SplitCounterOptions {
  /** Keys that share the increments. @default 16 */
  readonly parts?: number
  /** Milliseconds after which a part that is no longer written expires; 0: never. @default 0 */
  readonly ttlMs?: number
  /** Chance. @default the process' own */
  readonly runtime?: Pick<Runtime, 'random'>
}

/** A write-hot counter, spread over several keys and so over several nodes. */
export interface SplitCounter {
  /** Adds to one part, chosen at random. */
  increment(by?: number): Promise<void>
  /** The sum of all parts; each is read separately, so concurrent increments may or may not be included. */
  value(): Promise<number>
  /** Removes all parts. */
  reset(): Promise<void>
  readonly keys: readonly string[]
}

/**
 * Splits a counter that is written too often for one node. This is an explicit call and not a strategy: an increment no
 * longer returns the new value, and reads of the plain key do not see it.
 */
export function splitCounter(client: RedisClient, key: string, options: SplitCounterOptions = {}): SplitCounter {
  const { parts = 16, ttlMs = 0, runtime = systemRuntime } = options
  if (!Number.isSafeInteger(parts) || parts < 1 || parts > 1024)
    throw new InvalidOptionError('parts', parts, 'a whole number from 1 to 1024')
  const redis = toRedis(client)
  // Braces would keep all parts on one node.
  const base = key.replaceAll('{', '(').replaceAll('}', ')')
  const keys = Array.from({ length: parts }, (_, index) => `${base}:part:${index}`)
  return {
    keys,
    async increment(by = 1) {
      if (!Number.isSafeInteger(by)) throw new InvalidOptionError('by', by, 'a whole number')
      const part = keys[Math.floor(runtime.random() * parts)]!
      const sent = [redis.send(['INCRBY', part, by])]
      if (ttlMs > 0) sent.push(redis.send(['PEXPIRE', part, ttlMs]))
      await Promise.all(sent)
    },
    async value() {
      const values = await Promise.all(keys.map((part) => redis.send(['GET', part])))
      return values.reduce((sum: number, value) => sum + Number(value ?? 0), 0)
    },
    async reset() {
      await Promise.all(keys.map((part) => redis.send(['UNLINK', part])))
    },
  }
}
