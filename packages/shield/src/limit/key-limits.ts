import type { RateLimitStrategy, Runtime } from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import type { KeySpace } from '../gate/key-space.ts'
import { KeyLimit, type LimitBounds, limitKeyPrefix } from './key-limit.ts'

/** The limits on the hot keys of one Redis. Whoever reads a key of a database, its limit is one. */
export class KeyLimits {
  /** Where limits that all processes share are counted. */
  redis: Redis | undefined
  readonly #bounds: LimitBounds
  readonly #runtime: Runtime
  readonly #spaces: ReadonlyMap<string, KeySpace>

  constructor(bounds: LimitBounds, runtime: Runtime, spaces: ReadonlyMap<string, KeySpace>) {
    this.#bounds = bounds
    this.#runtime = runtime
    this.#spaces = spaces
  }

  /**
   * The limit on a hot key; undefined where the key is one that limits are counted under. `onRefused` is called for each
   * access that it refuses, where it is a new one.
   */
  of({ database }: KeySpace, key: string, strategy: RateLimitStrategy, onRefused: () => void): KeyLimit | undefined {
    if (key.startsWith(limitKeyPrefix)) return undefined
    for (const other of this.#spaces.values()) {
      const limit = other.database === database ? other.hot.peek(key)?.limit : undefined
      if (limit?.isFor(strategy) === true) return limit
    }
    return new KeyLimit({ key, strategy, redis: this.redis, runtime: this.#runtime, onRefused, ...this.#bounds })
  }
}
