import type { RateLimitStrategy } from '@firebreak/core'
import type { DiskReplies } from '../disk/disk-replies.ts'
import type { KeyLimit } from '../limit/key-limit.ts'
import type { Lease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'
import type { HotKey } from './hot-key.ts'
import { HotTable } from './hot-table.ts'

/** What a key space needs of its cluster. */
export interface KeySpaceHost {
  now(): number
  /** A number from 0 to 1. */
  random(): number
  /** Tells people of trouble, once. */
  warn(code: string, message: string): void
  /** Names this process among those that refresh copies. */
  readonly processId: string
  /** The hash that the accesses of this key are counted by. */
  hashOf(key: Uint8Array): number
  /** The watcher of the node that owns a slot; undefined while that is not known. */
  watcherAt(space: KeySpace, slot: number): TrackingWatcher | undefined
  /** What a reply is served under, and how long at most from when it was asked for. */
  guard(hot: HotKey, pttlMs: number, watcher: TrackingWatcher): { readonly lease: Lease; readonly ttlMs: number }
  /** The limit on a hot key; undefined where it is none of the application's keys. */
  makeLimit(space: KeySpace, name: string, strategy: RateLimitStrategy): KeyLimit | undefined
  /** Where a key's replies are on disk; undefined without a disk tier. */
  makeDiskReplies(space: KeySpace, name: string): DiskReplies | undefined
  /** The key's replies grew: the cache that bounds them counts them. */
  kept(hot: HotKey): void
  /** The key has no replies any more. */
  released(hot: HotKey): void
}

/**
 * The keys of one database as one identity may read them. A key of the same name in another database, or read by a user
 * with other rights, is another entry.
 */
export class KeySpace {
  readonly id: string
  /** As whom the keys are read; empty for the application itself. */
  readonly identity: string
  readonly database: number
  /** Where and as whom the keys are read. */
  readonly upstream: Upstream
  /** The hot keys by name; this is the one look-up that a cold access pays. */
  readonly hot: ReadonlyMap<string, HotKey>
  /** The same by their bytes. */
  readonly byBytes = new HotTable()
  readonly #hot = new Map<string, HotKey>()
  readonly #host: KeySpaceHost

  constructor(identity: string, database: number, upstream: Upstream, host: KeySpaceHost) {
    this.identity = identity
    this.id = `${database} ${identity}`
    this.database = database
    this.upstream = upstream
    this.#host = host
    this.hot = this.#hot
  }

  add(hot: HotKey): void {
    this.#hot.set(hot.name, hot)
    this.byBytes.add(hot, this.#host.hashOf(hot.bytes))
  }

  remove(hot: HotKey): void {
    this.#hot.delete(hot.name)
    this.byBytes.remove(hot)
  }

  now(): number {
    return this.#host.now()
  }

  random(): number {
    return this.#host.random()
  }

  warn(code: string, message: string): void {
    this.#host.warn(code, message)
  }

  get processId(): string {
    return this.#host.processId
  }

  watcherOf(hot: HotKey): TrackingWatcher | undefined {
    return this.#host.watcherAt(this, hot.slot)
  }

  watcherAt(slot: number): TrackingWatcher | undefined {
    return this.#host.watcherAt(this, slot)
  }

  guard(hot: HotKey, pttlMs: number, watcher: TrackingWatcher): { readonly lease: Lease; readonly ttlMs: number } {
    return this.#host.guard(hot, pttlMs, watcher)
  }

  makeLimit(name: string, strategy: RateLimitStrategy): KeyLimit | undefined {
    return this.#host.makeLimit(this, name, strategy)
  }

  makeDiskReplies(name: string): DiskReplies | undefined {
    return this.#host.makeDiskReplies(this, name)
  }

  kept(hot: HotKey): void {
    this.#host.kept(hot)
  }

  released(hot: HotKey): void {
    this.#host.released(hot)
  }
}
