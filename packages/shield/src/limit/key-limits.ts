import type { RateLimitStrategy, Runtime } from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import type { KeySpace } from '../gate/key-space.ts'
import { KeyLimit, type LimitBounds, limitKeyPrefix } from './key-limit.ts'

/** The limits on the hot keys of one Redis. A key of a database has one limit, whoever reads it. */
export class KeyLimits {
  /** Where shared limits are counted. */
  redis: Redis | undefined
  readonly #bounds: LimitBounds
  readonly #runtime: Runtime
  readonly #spaces: ReadonlyMap<string, KeySpace>

  readonly #serviceId: string

  constructor(bounds: LimitBounds, runtime: Runtime, spaces: ReadonlyMap<string, KeySpace>, serviceId: string) {
    this.#serviceId = serviceId
    this.#bounds = bounds
    this.#runtime = runtime
    this.#spaces = spaces
  }

  /**
   * The limit on a hot key; undefined if the key itself counts a limit. `onRefused` is called for each access that it
   * refuses, if it is a new one.
   */
  of({ database }: KeySpace, key: string, strategy: RateLimitStrategy, onRefused: () => void): KeyLimit | undefined {
    if (key.startsWith(limitKeyPrefix)) return undefined
    for (const other of this.#spaces.values()) {
      const limit = other.database === database ? other.hot.peek(key)?.limit : undefined
      if (limit?.isFor(strategy) === true) return limit
    }
    const options = { key, strategy, redis: this.redis, runtime: this.#runtime, serviceId: this.#serviceId, onRefused }
    return new KeyLimit({ ...options, ...this.#bounds })
  }

  /** A key has given up its limit: whoever waits for it proceeds, unless the key still has it for others. */
  leave({ database }: KeySpace, key: string, limit: KeyLimit): void {
    for (const other of this.#spaces.values()) {
      if (other.database === database && other.hot.peek(key)?.limit === limit) return
    }
    limit.letGo()
  }
}
