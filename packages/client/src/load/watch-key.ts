import { keyName } from '@firebreak/core'
import type { RedisClient } from '@firebreak/redis'
import { prefixedKey } from '../key-prefix.ts'
import { clusterOf, peek } from '../protect.ts'
import { type GetOrLoadOptions, getOrLoad, type Loader } from './get-or-load.ts'

/** One access that does not go through the client. */
export interface WatchedAccess {
  /** @default false */
  readonly isWrite?: boolean
  /** Approximate number of bytes read or written. @default 0 */
  readonly bytes?: number
}

/** A key whose value the application loads, and perhaps caches, itself. */
export interface WatchedKey {
  readonly key: string
  /** True while the hub, or this process on its own, considers the key hot. */
  readonly isHot: boolean
  /** Counts an access that did not go through the client, so that the key's true heat is known. */
  access(access?: WatchedAccess): void
  /** The value if it is currently in memory; null: it does not exist; undefined: only a read can tell. */
  peek(): string | null | undefined
  /** Reads memory, then Redis, then the loader, once across all processes (see `getOrLoad`). */
  getOrLoad(loader: Loader, options: GetOrLoadOptions): Promise<string | null>
}

/**
 * Watches a key for application code that does its own loading. On an unprotected client nothing is counted and nothing
 * is hot, but loading still works.
 */
export function watchKey(client: RedisClient & object, key: string): WatchedKey {
  const name = keyName(prefixedKey(client, key))
  return {
    key,
    get isHot() {
      return clusterOf(client)?.isHot(name) === true
    },
    access({ isWrite = false, bytes = 0 } = {}) {
      const cluster = clusterOf(client)
      if (cluster?.isActive) cluster.count(name, isWrite, bytes)
    },
    peek: () => peek(client, key),
    getOrLoad: (loader, options) => getOrLoad(client, key, loader, options),
  }
}
