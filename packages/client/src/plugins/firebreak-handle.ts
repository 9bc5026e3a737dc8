import type { RedisClient } from '@firebreak/redis'
import { type SplitCounter, type SplitCounterOptions, splitCounter } from '../counter/split-counter.ts'
import { type GetOrLoadOptions, getOrLoad, type Loader } from '../load/get-or-load.ts'
import { type WatchedKey, watchKey } from '../load/watch-key.ts'
import { peek, protect, unprotect } from '../protect.ts'
import type { ProtectOptions } from '../protect-options.ts'

/** A client to protect, and how. */
export interface PluginOptions extends ProtectOptions {
  readonly client: RedisClient & object
}

/** What plug-ins provide to the application. */
export interface FirebreakHandle {
  /** The protected client, the same object that was passed in. */
  readonly client: RedisClient & object
  peek(key: string): string | null | undefined
  getOrLoad(key: string, loader: Loader, options: GetOrLoadOptions): Promise<string | null>
  watchKey(key: string): WatchedKey
  splitCounter(key: string, options?: SplitCounterOptions): SplitCounter
  /** Ends the protection; the client stays open. */
  close(): void
}

/** Protects a client and binds what belongs to it. */
export function openFirebreak({ client, ...options }: PluginOptions): FirebreakHandle {
  const protectedClient = protect(client, options)
  return {
    client: protectedClient,
    peek: (key) => peek(protectedClient, key),
    getOrLoad: (key, loader, loadOptions) => getOrLoad(protectedClient, key, loader, loadOptions),
    watchKey: (key) => watchKey(protectedClient, key),
    splitCounter: (key, counterOptions) => splitCounter(protectedClient, key, counterOptions),
    close: () => unprotect(protectedClient),
  }
}
