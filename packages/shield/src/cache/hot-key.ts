import { type BoundedCache, keyBytes, type Strategy } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { WaitingCounter } from '../combine/combine-owner.ts'
import type { CopiedKey } from '../copies/copied-key.ts'
import { CopySet } from '../copies/copy-set.ts'
import { loadFromDisk } from '../disk/disk-load.ts'
import { DiskReplies } from '../disk/disk-replies.ts'
import type { HeardCommands } from '../gate/heard-commands.ts'
import type { KeySpace } from '../gate/key-space.ts'
import type { KeyLimit } from '../limit/key-limit.ts'
import { LastReplies } from '../limit/last-replies.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { KeyReading } from '../watcher/key-read.ts'
import { endlessLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import { CachedReply, ownBytes, type ReplyRefresher, replyCost } from './cached-reply.ts'
import { CountedKey } from './counted-key.ts'
import { lifeOf } from './guard.ts'
import type { Handling } from './handling.ts'
import { finish, type Load, type LoadedHandler, Loads } from './load.ts'
import { getCommand, type ReadCommand } from './read-command.ts'
import { ReplySet } from './reply-set.ts'
import type { SharedByKeys } from './shared-by-keys.ts'

let hotKeys = 0

const never = Number.POSITIVE_INFINITY

/**
 * A hot key in one key space: its strategy, the replies kept under it (one entry, so that one invalidation drops them
 * all), the loads in flight, and how much all of this saved.
 *
 * *Poison.* A load that was sent before a change became known may return the old value. The change removes it from the
 * list, so that later readers start a new one, and marks it, so that its reply goes to those who were already waiting
 * (their read began earlier) but is not kept.
 *
 * *Own writes.* Redis answers a connection's commands in order, and applications rely on that: `get(k); set(k)` reads
 * the old value and `set(k); get(k)` the new one, whether or not they wait. Our reads go over another connection, so
 * (1) waiting readers are moved to the application's connection before a write is sent there, and (2) from then until
 * its acknowledgement the key's reads use that connection too.
 */
export class HotKey extends CountedKey implements CopiedKey, ReplyRefresher {
  /** Which hot key of the process it is: younger ones have higher numbers. */
  readonly ordinal: number = ++hotKeys
  readonly name: string
  readonly slot: number
  readonly space: KeySpace
  handling: Handling
  /** Own writes that are not acknowledged. */
  pendingWrites = 0
  /** Set while the key's replies are larger than the cache: reads go to Redis until then. */
  bypassUntil = Number.NEGATIVE_INFINITY
  /** The key's name in the cache that bounds it. */
  readonly cacheId: string
  /** The cache that bounds the replies, and the key's slot in it while it has any. */
  cache: BoundedCache<HotKey> | undefined
  cacheSlot = 0
  /** The key's copies, if its strategy is RedundantKeys. */
  copies: CopySet | undefined
  /** True while a timer is set to maintain the copies. */
  areCopiesTimed = false
  /** The limit on the key, if its strategy is RateLimit. */
  limit: KeyLimit | undefined
  /** Set while its commands are counted one by one. */
  heard: HeardCommands | undefined
  /** Incremented whenever its value, or the permissions on it, may have changed other than by an increment. */
  epoch = 0
  /** Counters of it in which increments wait to be sent together; most keys never have any, and a set is large. */
  #waiting: Set<WaitingCounter> | undefined
  /** What its admitted reads brought. Of this key space alone: the limit is for all users, what they may read is not. */
  #last: LastReplies | undefined
  /** The node whose watcher guards the replies. */
  node: string | undefined
  /** Its position among the keys that keep replies; -1 if it has none. */
  keptAt = -1
  readonly #bytes: Uint8Array | undefined
  readonly #shared: SharedByKeys
  readonly #replies = new ReplySet()
  readonly #disk: DiskReplies | undefined
  readonly #loads = new Loads()
  #byteCount = 0

  /** `bytes`: those of the name, if they are kept anyway. */
  constructor(name: string, space: KeySpace, handling: Handling, shared: SharedByKeys, bytes?: Uint8Array) {
    super()
    this.name = name
    this.#bytes = bytes
    this.slot = keySlotOfBytes(this.bytes)
    this.space = space
    this.cacheId = `${space.id} ${name}`
    this.handling = handling
    this.#shared = shared
    const { diskTier, redisClusterId } = shared
    this.#disk = diskTier && new DiskReplies(diskTier, `${redisClusterId}\n${space.id}\n${name}`)
    this.#equip()
  }

  /** The bytes of its name. Only loads need them, and with their `ArrayBuffer` they would take 200 bytes for each key. */
  get bytes(): Uint8Array {
    return this.#bytes ?? keyBytes(this.name)
  }

  /** True if reads of this key may be answered from memory. */
  get isCached(): boolean {
    return this.handling.strategy.strategy === 'LocalCache'
  }

  /** True if every command on this key must go through the gate: its limit comes first, or commands are counted. */
  get isGated(): boolean {
    return this.limit !== undefined || this.heard !== undefined
  }

  /** True if increments of this key are combined. */
  get isCombined(): boolean {
    return this.handling.strategy.strategy === 'Combine'
  }

  /** True if the shield answers reads of this key: from memory or from copies. */
  get isServed(): boolean {
    return this.isCached || this.copies !== undefined || this.limit?.keepsLast === true
  }

  /** False if its strategy serves a value until its TTL even if the key changes. */
  get isConsistent(): boolean {
    const { strategy } = this.handling
    return strategy.strategy === 'LocalCache' && strategy.consistent
  }

  /** Extends or changes the handling; the same strategy again never drops what is kept. */
  setHandling(handling: Handling): void {
    const before = this.handling.strategy
    this.handling = handling
    const isSame = before === handling.strategy || textOf(before) === textOf(handling.strategy)
    if (isSame) return
    this.release()
    this.drop()
    this.#equip()
  }

  /** The key is no longer hot: drops what is stored for it, here and on the servers. */
  close(): void {
    this.release()
    this.drop()
    this.#shared.kept.remove(this)
    this.#closeCopies()
    this.#setLimit(undefined)
  }

  /** The kill switch was turned on or off: copies exist only while it is off, and nobody waits while it is on. */
  switched(): void {
    if (this.#shared.isActive()) {
      if (this.copies === undefined) this.#openCopies()
      return
    }
    this.#closeCopies()
    this.limit?.letGo()
  }

  /** Who waits need not wait any longer if there is no limit; if there is another one, they wait for the old one. */
  #setLimit(limit: KeyLimit | undefined): void {
    const before = this.limit
    this.limit = limit
    if (before !== undefined && limit === undefined) this.#shared.limits.leave(this.space, this.name, before)
  }

  #openCopies(): void {
    const { strategy } = this.handling
    const hasCopies = strategy.strategy === 'RedundantKeys' && this.#shared.isActive()
    this.copies = hasCopies ? new CopySet(this, this.#shared, strategy) : undefined
  }

  #closeCopies(): void {
    const { copies } = this
    // It is not the key's any more, whatever it asks for.
    this.copies = undefined
    copies?.close()
  }

  hasCopy(name: string): boolean {
    const { copies } = this.space.hot.peek(this.name) ?? this
    return copies?.copies.some((copy) => copy.name === name) ?? false
  }

  /** Sends the waiting increments: perhaps nobody will check on them again. */
  release(): void {
    if (this.#waiting !== undefined) for (const counter of [...this.#waiting]) counter.flush()
  }

  /** A counter has begun to hold increments, or has sent them. */
  setWaiting(counter: WaitingCounter, isWaiting: boolean): void {
    this.#waiting ??= new Set()
    if (isWaiting) this.#waiting.add(counter)
    else this.#waiting.delete(counter)
  }

  /** Creates what the strategy needs besides the cache. */
  #equip(): void {
    this.#closeCopies()
    const { strategy } = this.handling
    const { limits } = this.#shared
    const touch = () => this.touch()
    this.#setLimit(strategy.strategy === 'RateLimit' ? limits.of(this.space, this.name, strategy, touch) : undefined)
    this.#last = this.limit?.keepsLast ? new LastReplies() : undefined
    this.#openCopies()
  }

  protected override noteTouched(): void {
    this.#shared.touched.add(this)
  }

  override resetEffect(): void {
    super.resetEffect()
    if (this.limit !== undefined) this.limit.limited = 0
  }

  /** Where failures of combining are reported. */
  get trouble(): Trouble {
    return this.#shared.trouble
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

  /** True if replies are kept, in memory or on disk. */
  get hasReplies(): boolean {
    return this.#replies.size > 0 || (this.#disk?.size ?? 0) > 0
  }

  /** The reply kept for a command, whether or not it may be served. */
  replyTo(commandId: string): CachedReply | undefined {
    return this.#replies.get(commandId)
  }

  /** A reply to a command whose only argument is the key, so that it can be requested again. */
  bareReply(): { readonly commandId: string; readonly reply: CachedReply } | undefined {
    for (const [commandId, reply] of this.#replies) if (!commandId.includes(' ')) return { commandId, reply }
    return undefined
  }

  /** The reply to a command, if one may be served now. */
  peek(commandId: string, now: number): CachedReply | undefined {
    const reply = this.#replies.get(commandId)
    return reply === undefined || now >= reply.expiresAt || now >= reply.lease.aliveUntil ? undefined : reply
  }

  /** Like `peek`, for a reader: counted as a local hit. */
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

  /** The last reply to a read, for a reader refused by the key's limit. */
  lastReply(commandId: string): CachedReply | undefined {
    return this.#last?.get(commandId, this.#now())
  }

  /** The reply of the last hit is returned `count` more times. */
  hitAgain(reply: CachedReply, count: number): void {
    this.countHits(count, reply.bytes.length)
  }

  /**
   * Reads Redis for the caller and everyone else who asks meanwhile; `onLoaded` gets the reply. False if that is not
   * possible now: then the caller asks Redis itself.
   */
  load(command: ReadCommand, now: number, onLoaded: LoadedHandler): boolean {
    if (this.pendingWrites > 0) return false
    if (this.copies !== undefined) return this.copies.read(command, onLoaded)
    if (this.limit?.keepsLast) return this.readOriginal(command, onLoaded)
    if (!this.isCached || now < this.bypassUntil) return false
    return this.readOriginal(command, onLoaded)
  }

  /** Reads Redis for the next reader. */
  reload(command: ReadCommand): void {
    this.load(command, this.#now(), ignoreReply)
  }

  /** A kept reply is about to expire. */
  refresh(command: ReadCommand = getCommand(this)): void {
    // The reply on disk is as old as the one to be renewed.
    this.#disk?.forget(command.id)
    this.reload(command)
  }

  readOriginal(command: ReadCommand, onLoaded: LoadedHandler): boolean {
    const load = this.#loads.join(command.id, onLoaded, this.#now(), this.#longestJoinMs())
    if (load === undefined) return true
    let isLoading = false
    try {
      isLoading = this.#readDisk(command, load) || this.#readRedis(command, load)
    } finally {
      if (!isLoading) this.#loads.leave(command.id, load)
    }
    return isLoading
  }

  /** The maximum age of a load that another reader may join: nobody may get more than a guard would allow. */
  #longestJoinMs(): number {
    const { strategy } = this.handling
    const { leaseMs } = this.#shared.guards
    return strategy.strategy === 'LocalCache' ? Math.min(leaseMs, strategy.maxStalenessMs ?? leaseMs) : leaseMs
  }

  /** The watcher of the key's node; undefined while unknown. */
  get watcher(): TrackingWatcher | undefined {
    return this.#shared.watchers.at(this.space, this.slot)
  }

  /** The watcher of the key's node, if it can read now; the next read from Redis goes through it. */
  reader(): TrackingWatcher | undefined {
    const { watcher } = this
    if (watcher === undefined || !watcher.canRead) return undefined
    this.redisReads++
    this.touch()
    this.node = watcher.node
    return watcher
  }

  /** Reads the key from its node; false if that is not possible now. */
  #readRedis(command: ReadCommand, load: Load): boolean {
    const watcher = this.reader()
    if (watcher === undefined) {
      this.#lapsed()
      return false
    }
    watcher.read(this.space.database, this.bytes, command.encode(), (reading, sentAt) => {
      this.#orGiveBack(command, load, () => {
        if (reading === undefined && !watcher.canRead) this.#lapsed()
        if (reading === undefined) this.#loads.end(command.id, load, undefined, never)
        else this.#took(command, load, reading, sentAt, watcher)
      })
    })
    return true
  }

  /** Handles the outcome of a load; if that fails, its readers ask Redis themselves. */
  #orGiveBack(command: ReadCommand, load: Load, handle: () => void): void {
    this.#shared.trouble.attempt(handle, () => {
      finish(load, undefined, never)
      this.drop()
      this.#loads.leave(command.id, load)
    })
  }

  /**
   * No lease is held, or Redis was read around us: a reader may have seen something newer than what is kept, and a new
   * lease would revive the old.
   */
  #lapsed(): void {
    if (this.isConsistent) this.drop()
  }

  #readDisk(command: ReadCommand, load: Load): boolean {
    if (this.#disk === undefined || !this.isCached) return false
    return loadFromDisk(this.#disk, this, command, this.#shared.runtime.clock, {
      served: (reply) => {
        this.#orGiveBack(command, load, () => {
          this.countHits(load.readers.length, reply.bytes.length)
          if (this.#mayKeep(load)) this.#keep(command.id, reply)
          this.#loads.end(command.id, load, reply, reply.expiresAt)
        })
      },
      confirmed: (reading, sentAt, watcher) => {
        this.#orGiveBack(command, load, () => {
          this.bytesSaved += reading.reply.length
          this.#took(command, load, reading, sentAt, watcher)
        })
      },
      missed: () => this.#orGiveBack(command, load, () => this.#readOn(command, load)),
    })
  }

  /** The disk did not help: Redis is read for those who are still waiting. */
  #readOn(command: ReadCommand, load: Load): void {
    const isWanted = load.readers.length > 0
    if (!isWanted || !this.#readRedis(command, load)) this.#loads.end(command.id, load, undefined, never)
  }

  /** Before an own write is sent: reads bypass the cache until `endWrite`. */
  beginWrite(): void {
    this.pendingWrites++
    this.abandon()
  }

  /** The write was acknowledged, or its outcome is unknown. */
  endWrite(): void {
    this.pendingWrites--
    this.drop()
    this.copies?.written()
  }

  /** Sends every waiting reader to Redis and drops every reply, because an own write is about to be sent. */
  abandon(): void {
    const loads = this.#loads.poison()
    this.dropReplies()
    for (const load of loads) finish(load, undefined, never)
    this.copies?.abandon()
  }

  /** Drops every reply and poisons every load: a change became known other than through the watcher. */
  drop(): void {
    this.#loads.poison()
    this.dropReplies()
  }

  /** A read that bypassed memory was answered: anything read before that may be older. */
  overtaken(): void {
    this.#lapsed()
    this.copies?.written()
  }

  /** Like `drop`, including what a limit or copies would serve: any key may have changed, or its permissions. */
  flush(): void {
    this.epoch++
    this.#last?.clear()
    this.drop()
    this.copies?.missed()
  }

  /** Messages of the hub's lane may be missing, which does not affect what a Redis watcher guards. */
  laneMissed(): void {
    const isTracked = [...this.#replies].every(([, { lease }]) => lease !== endlessLease && !lease.isOfLane)
    if (!this.isConsistent || !isTracked || this.watcher?.state === 'fallback') this.flush()
    // It is not known yet what will guard a reply in flight.
    else this.#loads.poison()
  }

  /** The key's new value arrived with the notice of its change, and replaces the one that is kept. */
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
   * Drops every reply. Enough for what the watcher itself reports: it reads and listens on one connection, so a load
   * whose reply follows the notice was answered after the change.
   */
  dropReplies(): void {
    this.#disk?.drop()
    if (this.#replies.size === 0) return
    this.#forget()
    this.cache?.delete(this.cacheId)
  }

  /** The cache has no room for the replies: moves them to disk; true if all of them are there. */
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
    // Replies on disk disappear silently: that is noticed when the key is next looked at.
    if (this.#disk === undefined) this.#shared.kept.remove(this)
  }

  /** Redis was read: keeps the reply if allowed, and gives it to those who wait. */
  #took(command: ReadCommand, load: Load, reading: KeyReading, sentAt: number, watcher: TrackingWatcher): void {
    const reply = this.#take(command, load, reading, sentAt, watcher)
    const keyEndsAt = reading.pttlMs >= 0 ? sentAt + reading.pttlMs : never
    this.#loads.end(command.id, load, reply, Math.min(reply.expiresAt, keyEndsAt))
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
    reply.refreshBefore(ttlMs, runtime.random(), this, command)
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

/** The part of a strategy that says what to do: where copies are is only reported to others. */
function textOf(strategy: Strategy): string {
  if (strategy.strategy !== 'RedundantKeys') return JSON.stringify(strategy)
  const { placed: _, ...rest } = strategy
  return JSON.stringify(rest)
}
