import { FirebreakError } from '@firebreak/core'
import type { RedisClient } from '@firebreak/redis'
import { describeKind } from '../check-options.ts'
import { type SplitCounter, type SplitCounterOptions, splitCounter } from '../counter/split-counter.ts'
import { type GetOrLoadOptions, getOrLoad, type Loader } from '../load/get-or-load.ts'
import { type WatchedKey, watchKey } from '../load/watch-key.ts'
import { isRedisClient, peek, protect, unprotect } from '../protect.ts'
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
export function openFirebreak(given: PluginOptions): FirebreakHandle {
  const { client, ...options } = checked(given)
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

/** Tells what a plug-in takes to whoever passes the client itself, or none. */
function checked(given: unknown): PluginOptions {
  const form = 'pass { client: redis, hubs: […], serviceId: … }'
  if (isRedisClient(given)) {
    throw new FirebreakError(
      'FB_OPTION_INVALID',
      `firebreak: this is a client, not the options; ${form}, or call protect(redis) from 'firebreak' where there is no framework`,
    )
  }
  if (typeof given !== 'object' || given === null)
    throw new FirebreakError('FB_OPTION_INVALID', `firebreak: the options are ${describeKind(given)}; ${form}`)
  const { client } = given as Partial<PluginOptions>
  if (client === undefined || client === null) {
    throw new FirebreakError('FB_OPTION_INVALID', `firebreak: option client is missing; ${form}`)
  }
  return given as PluginOptions
}
