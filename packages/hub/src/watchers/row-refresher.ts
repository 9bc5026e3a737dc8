import { FirebreakError, systemTimers, type Timers } from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import type { KeyRefresh, Row } from '@firebreak/watch'
import { fetchWithin } from '../http/fetch-within.ts'
import type { LanePublisher } from './lane-publisher.ts'

/** Computes a key's value with the application's own code. */
export type RowLoader = (loader: string, key: string, row: Row) => Promise<string | null>

/** What the refresher needs. */
export interface RowRefresherOptions {
  readonly redis: Redis
  readonly lane: LanePublisher
  readonly database?: number
  /** Whether a key is hot now: a hot key is never deleted. */
  readonly isHot: (key: string) => boolean
  /** @default none: rows that need a loader fail */
  readonly loader?: RowLoader
  /** How long a hot key whose row is gone keeps its tombstone. @default 60 */
  readonly tombstoneSeconds?: number
}

/**
 * Carries row changes to Redis, then to the clients: the key is set to its new value, never deleted under load, and the
 * new value travels on the lane, so that thousands of processes need not read it from Redis.
 */
export class RowRefresher {
  readonly counts = { set: 0, loaded: 0, deleted: 0, buried: 0 }
  readonly #options: Required<Omit<RowRefresherOptions, 'loader'>> & Pick<RowRefresherOptions, 'loader'>

  constructor(options: RowRefresherOptions) {
    this.#options = { database: 0, tombstoneSeconds: 60, ...options }
  }

  /** Resolves once Redis has acknowledged everything; after a failure the caller must retry. */
  async apply(refreshes: readonly KeyRefresh[]): Promise<void> {
    // Within one transaction the last state of a key counts.
    const last = new Map(refreshes.map((refresh) => [refresh.key, refresh]))
    await Promise.all([...last.values()].map((refresh) => this.#one(refresh)))
  }

  async #one(refresh: KeyRefresh): Promise<void> {
    switch (refresh.kind) {
      case 'set':
        this.counts.set++
        return this.#set(refresh.key, refresh.value, refresh.ttlSeconds)
      case 'load': {
        const { loader } = this.#options
        if (loader === undefined)
          throw new FirebreakError(
            'FB_HUB_LOADER',
            `the key ${refresh.key} needs the loader ${refresh.loader}, but no loader is configured`,
          )
        const value = await loader(refresh.loader, refresh.key, refresh.row)
        this.counts.loaded++
        return value === null ? this.#gone(refresh.key, 'null') : this.#set(refresh.key, value, refresh.ttlSeconds)
      }
      case 'gone':
        return this.#gone(refresh.key, refresh.tombstone)
    }
  }

  async #set(key: string, value: string, ttlSeconds: number | undefined): Promise<void> {
    const { redis, lane, database } = this.#options
    await redis.send(ttlSeconds === undefined ? ['SET', key, value] : ['SET', key, value, 'EX', ttlSeconds])
    const ttl = ttlSeconds === undefined ? {} : { ttlMs: ttlSeconds * 1000 }
    lane.changed(database, [{ key, value: new TextEncoder().encode(value), ...ttl }])
  }

  async #gone(key: string, tombstone: string): Promise<void> {
    const { redis, lane, database, isHot, tombstoneSeconds } = this.#options
    if (isHot(key)) {
      this.counts.buried++
      return this.#set(key, tombstone, tombstoneSeconds)
    }
    this.counts.deleted++
    await redis.send(['DEL', key])
    lane.changed(database, [{ key }])
  }
}

/**
 * A loader that asks the application over HTTP: POST {loader, key, row}; the response body is the value, 404 means
 * none.
 */
export function httpLoader(url: string, timers: Timers = systemTimers, timeoutMs = 5000): RowLoader {
  return (loader, key, row) => {
    const body = JSON.stringify({ loader, key, row })
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
    return fetchWithin(timers, timeoutMs, url, init, async (response) => {
      if (response.status === 404) return null
      if (!response.ok)
        throw new FirebreakError('FB_HUB_LOADER', `the loader at ${url} answered ${response.status} for ${key}`)
      return response.text()
    })
  }
}
