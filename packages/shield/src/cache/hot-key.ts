import { type BoundedCache, keyBytes } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import { type CopiedKey, CopySet } from '../copies/copy-set.ts'
import { loadFromDisk } from '../disk/disk-load.ts'
import { DiskReplies } from '../disk/disk-replies.ts'
import type { KeySpace } from '../gate/key-space.ts'
import type { KeyLimit } from '../limit/key-limit.ts'
import { LastReplies } from '../limit/last-replies.ts'
import type { KeyReading } from '../watcher/key-read.ts'
import { endlessLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import { CachedReply, ownBytes, replyCost } from './cached-reply.ts'
import { lifeOf } from './guard.ts'
import type { Handling } from './handling.ts'
import { finish, type Load, type LoadedHandler, Loads } from './load.ts'
import type { ReadCommand } from './read-command.ts'
import { ReplySet } from './reply-set.ts'
import type { SharedByKeys } from './shared-by-keys.ts'

let hotKeys = 0

/**
 * A hot key in one key space: its strategy, the replies kept under it (one entry, so that one invalidation drops them
 * all), the loads in flight, and what all of this saved.
 *
 * *Poison.* A load that was sent before a change became known may bring the old value. The change takes it off the list,
 * so that later readers start a new one, and marks it, so that its reply is handed to those who waited already (their
 * read began before) but is not kept.
 *
 * *Own writes.* Redis answers a connection's commands in order, and applications rely on it: `get(k); set(k)` reads the
 * old value and `set(k); get(k)` the new one, waited for or not. Our reads go over another connection, so (1) readers
 * who still wait are sent to the application's connection before a write goes out there, and (2) from then until its
 * acknowledgement the key's reads take that connection too.
 */
export class HotKey implements CopiedKey {
  /** Which hot key of the process it is: younger ones have higher numbers. */
  readonly ordinal: number = ++hotKeys
  readonly name: string
  readonly bytes: Uint8Array
  readonly slot: number
  readonly space: KeySpace
  handling: Handling
  /** Own writes that are not acknowledged. */
  pendingWrites = 0
  /** Reads that were answered from memory and not yet counted as accesses. */
  uncounted = 0
  localHits = 0
  redisReads = 0
  bytesSaved = 0
  loadCount = 0
  loadMs = 0
  /** Largest staleness that the canary saw since the last status; undefined where it did not look. */
  staleMs: number | undefined
  /** Set while the key's replies are larger than the cache: reads go to Redis until then. */
  bypassUntil = Number.NEGATIVE_INFINITY
  /** The key's name in the cache that bounds it. */
  readonly cacheId: string
  /** The cache that bounds the replies, and the key's slot in it while it has any. */
  cache: BoundedCache<HotKey> | undefined
  cacheSlot = 0
  /** The key's copies, where its strategy is RedundantKeys. */
  copies: CopySet | undefined
  /** True while a timer is set that looks after the copies. */
  areCopiesTimed = false
  /** The limit on the key, where its strategy is RateLimit. */
  limit: KeyLimit | undefined
  /** What its admitted reads brought. Of this key space alone: the limit is for all users, what they may read is not. */
  #last: LastReplies | undefined
  /** The node whose watcher guards the replies. */
  node: string | undefined
  /** Its place among the keys that keep replies; -1 where it has none. */
  keptAt = -1
  /** True where something was counted since the counters were last taken. */
  isTouched = false
  #copyReads = 0
  readonly #shared: SharedByKeys
  readonly #replies = new ReplySet()
  readonly #disk: DiskReplies | undefined
  readonly #loads = new Loads()
  #byteCount = 0

  constructor(name: string, space: KeySpace, handling: Handling, shared: SharedByKeys, bytes = keyBytes(name)) {
    this.name = name
    this.bytes = bytes
    this.slot = keySlotOfBytes(this.bytes)
    this.space = space
    this.cacheId = `${space.id} ${name}`
    this.handling = handling
    this.#shared = shared
    const { diskTier, redisClusterId } = shared
    this.#disk = diskTier && new DiskReplies(diskTier, `${redisClusterId}\n${space.id}\n${name}`)
    this.#equip()
  }

  /** True where reads of this key may be answered from memory. */
  get isCached(): boolean {
    return this.handling.strategy.strategy === 'LocalCache'
  }

  /** True where reads of this key are answered by the shield: from memory or by copies. */
  get isServed(): boolean {
    return this.isCached || this.copies !== undefined || this.limit?.keepsLast === true
  }

  /** False where the strategy says that a value is served until its TTL, whatever happens to the key. */
  get isConsistent(): boolean {
    const { strategy } = this.handling
    return strategy.strategy === 'LocalCache' && strategy.consistent
  }

  /** Extends or changes what is done; the same strategy again never wipes what is kept. */
  setHandling(handling: Handling): void {
    const before = this.handling.strategy
    this.handling = handling
    const isSame = before === handling.strategy || JSON.stringify(before) === JSON.stringify(handling.strategy)
    if (isSame) return
    this.drop()
    this.#equip()
  }

  /** The key is no longer hot: what is kept of it goes, here and on the servers. */
  close(): void {
    this.drop()
    this.#shared.kept.remove(this)
    this.copies?.close()
    this.copies = undefined
  }

  /** Makes what the strategy needs beside the cache. */
  #equip(): void {
    this.copies?.close()
    const { strategy } = this.handling
    const { limits } = this.#shared
    const touch = () => this.touch()
    this.limit = strategy.strategy === 'RateLimit' ? limits.of(this.space, this.name, strategy, touch) : undefined
    this.#last = this.limit?.keepsLast ? new LastReplies() : undefined
    this.copies = strategy.strategy === 'RedundantKeys' ? new CopySet(this, this.#shared, strategy) : undefined
  }

  /** Reads that a copy answered. */
  get copyReads(): number {
    return this.#copyReads
  }

  set copyReads(count: number) {
    this.#copyReads = count
    this.touch()
  }

  /** A read could not be answered here and goes to Redis. */
  bypassed(): void {
    this.redisReads++
    this.touch()
  }

  /** The canary looked: `staleMs` is what it saw. */
  noteStaleness(staleMs: number): void {
    this.staleMs = Math.max(this.staleMs ?? 0, staleMs)
    this.touch()
  }

  /** Something is counted: whoever takes the counters need not look at the others. */
  touch(): void {
    if (this.isTouched) return
    this.isTouched = true
    this.#shared.touched.add(this)
  }

  /** Resets the effect's counters. */
  resetEffect(): void {
    this.localHits = 0
    this.redisReads = 0
    this.#copyReads = 0
    this.bytesSaved = 0
    this.loadCount = 0
    this.loadMs = 0
    this.staleMs = undefined
    if (this.limit !== undefined) this.limit.limited = 0
  }

  #now(): number {
    return this.#shared.runtime.clock.now()
  }

  /** Bytes of the replies that are kept. */
  get byteCount(): number {
    return this.#byteCount
  }

  /** Replies that are kept in memory. */
  get replyCount(): number {
    return this.#replies.size
  }

  /** True where replies are kept, in memory or on disk. */
  get hasReplies(): boolean {
    return this.#replies.size > 0 || (this.#disk?.size ?? 0) > 0
  }

  /** What is kept for a command, served or not. */
  replyTo(commandId: string): CachedReply | undefined {
    return this.#replies.get(commandId)
  }

  /** A reply whose command has the key as its only argument, so that it can be asked for again. */
  bareReply(): { readonly commandId: string; readonly reply: CachedReply } | undefined {
    for (const [commandId, reply] of this.#replies) if (!commandId.includes(' ')) return { commandId, reply }
    return undefined
  }

  /** The reply to a command, if one may be served at this moment. */
  peek(commandId: string, now: number): CachedReply | undefined {
    const reply = this.#replies.get(commandId)
    return reply === undefined || now >= reply.expiresAt || now >= reply.lease.aliveUntil ? undefined : reply
  }

  /** As `peek`, for a reader: it is counted as a local hit. */
  hit(commandId: string, now: number): CachedReply | undefined {
    const reply = this.peek(commandId, now)
    if (reply === undefined) return undefined
    this.localHits++
    this.bytesSaved += reply.bytes.length
    if (!this.isTouched) this.touch()
    this.cache!.touch(this.cacheSlot)
    if (now >= reply.refreshAt) reply.refreshOnce()
    return reply
  }

  /** The last reply to a read, for one that the key's limit refused. */
  lastReply(commandId: string): CachedReply | undefined {
    return this.#last?.get(commandId, this.#now())
  }

  /** A reply that was just hit is given `count` times more. */
  hitAgain(reply: CachedReply, count: number): void {
    this.localHits += count
    this.bytesSaved += reply.bytes.length * count
    this.touch()
  }

  /**
   * Reads Redis for the caller and whoever else asks meanwhile; `onLoaded` gets the reply. False where that cannot be
   * done now: then the caller asks Redis itself.
   */
  load(command: ReadCommand, now: number, onLoaded: LoadedHandler): boolean {
    if (this.pendingWrites > 0) return false
    if (this.copies !== undefined) return this.copies.read(command, onLoaded)
    if (this.limit?.keepsLast) return this.readOriginal(command, onLoaded)
    if (!this.isCached || now < this.bypassUntil) return false
    return this.readOriginal(command, onLoaded)
  }

  readOriginal(command: ReadCommand, onLoaded: LoadedHandler): boolean {
    const load = this.#loads.join(command.id, onLoaded, this.#now(), this.#longestJoinMs())
    if (load === undefined) return true
    const isLoading = this.#readDisk(command, load) || this.#readRedis(command, load)
    if (!isLoading) this.#loads.leave(command.id, load)
    return isLoading
  }

  /** How old a load may be that another reader waits for: nobody may be given more than a guard would let them have. */
  #longestJoinMs(): number {
    const { strategy } = this.handling
    const { leaseMs } = this.#shared.guards
    return strategy.strategy === 'LocalCache' ? Math.min(leaseMs, strategy.maxStalenessMs ?? leaseMs) : leaseMs
  }

  /** The watcher of the key's node; undefined while that is not known. */
  get watcher(): TrackingWatcher | undefined {
    return this.#shared.watchers.at(this.space, this.slot)
  }

  /** The watcher of the key's node, if it can read now; the next read of Redis goes through it. */
  reader(): TrackingWatcher | undefined {
    const { watcher } = this
    if (watcher === undefined || !watcher.canRead) return undefined
    this.redisReads++
    this.touch()
    this.node = watcher.node
    return watcher
  }

  /** Reads the key on its node; false where that cannot be done now. */
  #readRedis(command: ReadCommand, load: Load): boolean {
    const watcher = this.reader()
    if (watcher === undefined) {
      this.#lapsed()
      return false
    }
    watcher.read(this.space.database, this.bytes, command.encode(), (reading, sentAt) => {
      if (reading === undefined && !watcher.canRead) this.#lapsed()
      const reply = reading === undefined ? undefined : this.#take(command, load, reading, sentAt, watcher)
      this.#loads.end(command.id, load, reply)
    })
    return true
  }

  /** No lease is held, so a reader asks Redis itself: it may see more than what is kept, which a new lease would revive. */
  #lapsed(): void {
    if (this.isConsistent) this.drop()
  }

  #readDisk(command: ReadCommand, load: Load): boolean {
    if (this.#disk === undefined || !this.isCached) return false
    return loadFromDisk(this.#disk, this, command, this.#shared.runtime.clock, {
      served: (reply) => {
        this.localHits += load.readers.length
        this.bytesSaved += reply.bytes.length * load.readers.length
        this.touch()
        if (this.#mayKeep(load)) this.#keep(command.id, reply)
        this.#loads.end(command.id, load, reply)
      },
      confirmed: (reading, sentAt, watcher) => {
        this.bytesSaved += reading.reply.length
        this.#loads.end(command.id, load, this.#take(command, load, reading, sentAt, watcher))
      },
      missed: () => this.#readOn(command, load),
    })
  }

  /** The disk did not help: Redis is read for those who still wait. */
  #readOn(command: ReadCommand, load: Load): void {
    const isWanted = load.readers.length > 0
    if (!isWanted || !this.#readRedis(command, load)) this.#loads.end(command.id, load, undefined)
  }

  /** An own write goes out: reads bypass the cache until `endWrite`. */
  beginWrite(): void {
    this.pendingWrites++
    this.abandon()
  }

  /** The write was acknowledged, or it is not known what became of it. */
  endWrite(): void {
    this.pendingWrites--
    this.drop()
    this.copies?.written()
  }

  /** Sends every waiting reader to Redis, drops every reply: an own write is about to go out. */
  abandon(): void {
    const loads = this.#loads.poison()
    this.dropReplies()
    for (const load of loads) finish(load, undefined)
    this.copies?.abandon()
  }

  /** Drops every reply and poisons every load: a change became known by another way than the watcher. */
  drop(): void {
    this.#loads.poison()
    this.dropReplies()
  }

  /** As `drop`, with what a limit or copies would give: any key may have changed, or who may read it. */
  flush(): void {
    this.#last?.clear()
    this.drop()
    this.copies?.missed()
  }

  /** Messages of the hub's lane may be missing: what a watcher of Redis guards is not touched by that. */
  laneMissed(): void {
    const isTracked = [...this.#replies].every(([, { lease }]) => lease !== endlessLease && !lease.isOfLane)
    if (!this.isConsistent || !isTracked || this.watcher?.state === 'fallback') this.flush()
    // By whom a reply that is under way will be guarded is not known yet.
    else this.#loads.poison()
  }

  /** The key's new value came with the news of its change: it takes the place of the one that is kept. */
  renew(value: Uint8Array, ttlMs: number): void {
    const before = this.#replies.get('GET')
    this.drop()
    if (before === undefined || ttlMs <= 0 || !this.isCached || this.pendingWrites > 0) return
    const bytes = Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')])
    // A value says nothing about who may read it.
    const latest = this.space.upstream.rightsMs === undefined ? Number.POSITIVE_INFINITY : before.expiresAt
    this.#keep('GET', new CachedReply(bytes, Math.min(this.#now() + ttlMs, latest), endlessLease))
  }

  /**
   * Drops every reply. Enough for what the watcher itself tells: it reads and listens on one connection, so a load whose
   * reply comes behind the news was answered behind the change.
   */
  dropReplies(): void {
    this.#disk?.drop()
    if (this.#replies.size === 0) return
    this.#forget()
    this.cache?.delete(this.cacheId)
  }

  /** The cache has no room for the replies: they go to disk; true where all of them are there. */
  evict(): boolean {
    const disk = this.#disk
    let isKept = disk !== undefined
    if (disk !== undefined) for (const [id, reply] of this.#replies) isKept = disk.keep(id, reply) && isKept
    this.#forget()
    return isKept
  }

  #forget(): void {
    this.#replies.clear()
    this.#byteCount = 0
    // What is on disk goes without a word: there the key is found out when it is next looked at.
    if (this.#disk === undefined) this.#shared.kept.remove(this)
  }

  #take(
    command: ReadCommand,
    load: Load,
    { reply: bytes, pttlMs }: KeyReading,
    sentAt: number,
    watcher: TrackingWatcher,
  ): CachedReply {
    this.loadCount++
    this.touch()
    const { guards, runtime } = this.#shared
    this.loadMs += this.#now() - sentAt
    const bounds = { strategy: this.handling.strategy, pttlMs, rightsMs: this.space.upstream.rightsMs }
    const { lease, ttlMs } = lifeOf(bounds, watcher, guards, this.#now())
    const reply = new CachedReply(ownBytes(bytes), sentAt + ttlMs, lease)
    if (!load.isPoisoned) this.#last?.set(command.id, reply)
    if (ttlMs <= 0 || !this.#mayKeep(load)) return reply
    reply.refreshBefore(ttlMs, runtime.random(), () => {
      // What is on disk is as old as what is to be renewed.
      this.#disk?.forget(command.id)
      this.load(command, this.#now(), ignoreReply)
    })
    this.#disk?.forget(command.id)
    if (this.#disk?.isWrittenThrough) this.#disk.keep(command.id, reply)
    this.#keep(command.id, reply)
    return reply
  }

  #mayKeep(load: Load): boolean {
    return !load.isPoisoned && this.isCached && this.pendingWrites === 0
  }

  #keep(commandId: string, reply: CachedReply): void {
    const before = this.#replies.get(commandId)
    this.#byteCount += replyCost(commandId, reply) - (before === undefined ? 0 : replyCost(commandId, before))
    this.#replies.set(commandId, reply)
    this.#shared.kept.add(this)
    this.#shared.caches.kept(this, this.#now())
  }
}

const ignoreReply = () => {}
