import type {
  Clock,
  Invalidation,
  KeyEffect,
  RateLimitStrategy,
  Rule,
  TableEntry,
  Timers,
  WatcherStatus,
} from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import { lifeOf } from './cache/guard.ts'
import type { Handling } from './cache/handling.ts'
import { HotKey } from './cache/hot-key.ts'
import { KeySpace, type KeySpaceHost } from './cache/key-space.ts'
import { laneChanged } from './cache/lane-changed.ts'
import { ReplyCaches } from './cache/reply-caches.ts'
import { Canary } from './canary/canary.ts'
import { nodesOf } from './copies/place-copies.ts'
import { AccessLog, type AccessVisitor } from './counting/access-log.ts'
import type { ByteAccesses } from './counting/byte-accesses.ts'
import type { Crossing } from './counting/fast-path.ts'
import { DiskReplies } from './disk/disk-replies.ts'
import type { DiskTier } from './disk/disk-tier.ts'
import { KeyLimit, type LimitBounds, limitKeyPrefix } from './limit/key-limit.ts'
import { keyEffect } from './status/key-effect.ts'
import { Tally } from './status/tally.ts'
import type { Trouble } from './trouble/trouble.ts'
import { ClusterWatchers } from './watcher/cluster-watchers.ts'
import { LaneLease } from './watcher/lane-lease.ts'
import type { Lease } from './watcher/lease.ts'
import type { TrackingWatcher } from './watcher/tracking-watcher.ts'
import type { Upstream } from './watcher/upstream.ts'

/** What a cluster's shield is made of. */
export interface ClusterShieldOptions {
  readonly redisClusterId: string
  readonly serviceId: string
  /** Names this process among those of the fleet. */
  readonly processId: string
  readonly upstream: Upstream
  readonly leaseMs: number
  readonly fallbackTtlMs: number
  readonly canaryMs: number
  readonly maxKeys: number
  readonly limits: LimitBounds
  readonly redactKey: ((key: string) => string) | undefined
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly trouble: Trouble
  /** Where replies go that memory has no room for. */
  readonly diskTier: DiskTier | undefined
  /** One key grows fast: a report is wanted at once. */
  readonly onBurst: () => void
}

const claimHoldMs = 3000
/** How often the owner of a cached key's slot is asked, on a cluster. */
const slotPollMs = 500
/** Keys told of in one status. */
const maxEffects = 5000

/**
 * The shield of one Redis (a server, a Sentinel group, a cluster): counts its accesses, knows which of its keys are hot,
 * keeps their replies and the watchers that guard them. Hooks of a client and connections of a proxy work on it.
 */
export class ClusterShield implements KeySpaceHost {
  readonly redisClusterId: string
  readonly processId: string
  readonly tally = new Tally()
  readonly caches = new ReplyCaches()
  /** What the hub's lane guards where tracking is refused. */
  readonly laneLease = new LaneLease()
  /** False while the kill switch is thrown: hooks pass everything through, uncounted. */
  isActive = true
  /** True while some key of this Redis is hot; hooks need not look further while it is not. */
  hasHotKeys = false
  /** Where limits that all processes share are counted. */
  limitRedis: Redis | undefined
  readonly #options: ClusterShieldOptions
  readonly #accesses: AccessLog
  readonly #spaces = new Map<string, KeySpace>()
  readonly #watchers: ClusterWatchers
  readonly #claims = new Map<string, Handling>()
  readonly #hotListeners = new Set<() => void>()
  readonly #canary: Canary
  #handlings: ReadonlyMap<string, Handling> = new Map()
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: ClusterShieldOptions) {
    this.redisClusterId = options.redisClusterId
    this.processId = options.processId
    this.#options = options
    this.#accesses = new AccessLog(options)
    this.#watchers = new ClusterWatchers({
      ...options,
      onInvalidated: (names) => this.#invalidated(names),
      onNodeLost: (node) => this.#nodeLost(node),
    })
    this.#canary = new Canary({ ...options, everyMs: options.canaryMs })
  }

  /** True while all there is to do about an access is to count it. */
  get isCold(): boolean {
    return this.isActive && !this.hasHotKeys
  }

  /** Accesses of the interval that runs. */
  get countSoFar(): number {
    return this.#accesses.countSoFar
  }

  /** Masters of this Redis, as the application sees them now; 1 while that is not known. */
  get nodeCount(): number {
    const { upstream } = this.#options
    return upstream.isCluster ? Math.max(1, nodesOf((slot) => upstream.nodeOf(slot)).length) : 1
  }

  now(): number {
    return this.#options.clock.now()
  }

  random(): number {
    return this.#options.random()
  }

  warn(code: string, message: string): void {
    this.#options.trouble.note(code, message)
  }

  /** The key space of a database, as the application reads it or as another identity with its own upstream does. */
  space(database: number, identity?: { readonly id: string; readonly upstream: Upstream }): KeySpace {
    const identityId = identity?.id ?? ''
    const known = this.#spaces.get(`${database} ${identityId}`)
    if (known !== undefined) return known
    const space = new KeySpace(identityId, database, identity?.upstream ?? this.#options.upstream, this)
    this.#spaces.set(space.id, space)
    this.#apply(space)
    return space
  }

  /** True while a key is handled, by the table or by a claim of this process. */
  isHot(name: string): boolean {
    return this.isActive && this.#handlings.has(name)
  }

  /** What is hot, by its outside name. */
  *hotNames(): Generator<[outside: string, handling: Handling]> {
    for (const [name, handling] of this.#handlings) yield [this.#accesses.outside(name), handling]
  }

  /** Counts one access of a key. */
  count(name: string, isWrite: boolean, bytes = 0): void {
    this.#accesses.count(name, isWrite, bytes)
  }

  /** Counts accesses by the bytes of their keys. */
  get byBytes(): ByteAccesses {
    return this.#accesses.byBytes
  }

  hashOf(key: Uint8Array): number {
    return this.#accesses.hasher.hash(key, 0, key.length)
  }

  /** An own write of a hot key goes out: its reads bypass the cache until `endWrite`. */
  beginWrite(hot: HotKey): void {
    hot.pendingWrites++
    hot.abandon()
  }

  /** The write was acknowledged, or it is not known what became of it. */
  endWrite(hot: HotKey): void {
    hot.pendingWrites--
    hot.drop()
    hot.copies?.written()
  }

  /** Drops everything that is kept and poisons what is in flight. */
  flush(): void {
    this.tally.flushes++
    this.#options.diskTier?.distrust()
    for (const hot of this.#hotKeys()) hot.flush()
  }

  /** An own command that changes keys without naming them is about to go out: as `flush`, and nobody waits for us. */
  abandon(): void {
    this.tally.flushes++
    this.#options.diskTier?.distrust()
    for (const hot of this.#hotKeys()) hot.abandon()
  }

  /** A message of the hub's invalidation lane. */
  invalidate({ kind, items, database }: Invalidation): void {
    if (kind === 'flush' && database < 0) this.flush()
    for (const space of this.#spaces.values()) {
      if (database >= 0 && space.database !== database) continue
      if (kind === 'flush') for (const hot of space.hot.values()) hot.flush()
      for (const { key, value, ttlMs } of items) this.#dropKey(space, key, (hot) => laneChanged(hot, value, ttlMs))
    }
  }

  setRules(rules: readonly Rule[]): void {
    this.#accesses.setRules(rules)
  }

  /** What is hot now, by the table and by what this process claims itself. Entries of other clusters are passed over. */
  setTable(entries: Iterable<TableEntry>, hubNow: number): void {
    const handlings = new Map<string, Handling>()
    for (const { redisClusterId, key, strategy, ruleId, until } of entries) {
      if (redisClusterId !== this.redisClusterId || until <= hubNow) continue
      for (const name of this.#accesses.inside(key)) handlings.set(name, { strategy, ruleId, until, isClaim: false })
    }
    for (const [name, claim] of this.#claims) {
      if (claim.until <= hubNow || handlings.has(name)) this.#claims.delete(name)
      else handlings.set(name, claim)
    }
    this.#handlings = handlings
    for (const space of this.#spaces.values()) this.#apply(space)
    if (this.hasHotKeys === handlings.size > 0) return
    this.hasHotKeys = handlings.size > 0
    for (const listener of this.#hotListeners) listener()
  }

  /** Calls back whenever `hasHotKeys` changes; the returned function ends this. */
  onHotKeys(listener: () => void): () => void {
    this.#hotListeners.add(listener)
    return () => void this.#hotListeners.delete(listener)
  }

  /** True where keys were seen whose outside names the table may have. */
  takeNews(): boolean {
    return this.#accesses.takeNews()
  }

  /** Ends the interval: each key's counts to `visitor`; gives the accesses of all. */
  drain(visitor: AccessVisitor): number {
    for (const hot of this.#hotKeys()) this.#takeReads(hot)
    const { count, writes } = this.#accesses.drain(visitor, this.now())
    this.tally.reads += count - writes
    this.tally.writes += writes
    return count
  }

  /** Handles a key that this process alone made hot; true where it was not handled before. */
  claim(name: string, { strategy, ruleId }: Crossing, hubNow: number): boolean {
    const known = this.#handlings.get(name)
    if (known !== undefined && !known.isClaim) return false
    this.#claims.set(name, { strategy, ruleId, until: hubNow + claimHoldMs, isClaim: true })
    return known === undefined
  }

  /** Looks after the watchers, often: idle ones rest, a key whose node changed is dropped. */
  tick(): void {
    this.#accesses.flush()
    const used = new Set<TrackingWatcher>()
    const slots = new Map<number, HotKey>()
    for (const space of this.#spaces.values()) {
      for (const hot of space.hot.values()) {
        this.#takeReads(hot)
        for (const slot of hot.readSlots) {
          const watcher = space.watcherAt(slot)
          if (watcher !== undefined) used.add(watcher)
        }
        hot.copies?.tick()
        if (!hot.hasReplies) continue
        if (space.upstream.nodeOf(hot.slot) !== hot.node) hot.drop()
        else if (space.upstream.isCluster) slots.set(hot.slot, hot)
      }
    }
    this.#watchers.setUsed(used)
    this.#canary.tick(() => this.#hotKeys())
    if (this.now() - this.#probedAt < slotPollMs) return
    this.#probedAt = this.now()
    for (const hot of slots.values()) this.#probe(hot)
  }

  /** Asks the node of a cached key whether the slot is still its own: a cached NIL whose slot moves gets no push. */
  #probe(hot: HotKey): void {
    hot.space.watcherOf(hot)?.probe(hot.bytes, () => {
      hot.space.upstream.refresh?.()
      for (const other of hot.space.hot.values()) if (other.slot === hot.slot) other.drop()
    })
  }

  /** What each hot key's strategy did since the last call. */
  takeEffects(): KeyEffect[] {
    const effects: KeyEffect[] = []
    for (const hot of this.#hotKeys()) {
      this.tally.takeKey(hot)
      const outside = this.#accesses.outside(hot.name)
      const effect = effects.length < maxEffects ? keyEffect(this.redisClusterId, outside, hot) : undefined
      if (effect !== undefined) effects.push(effect)
      hot.resetEffect()
    }
    return effects
  }

  watcherStatuses(): WatcherStatus[] {
    return this.#watchers.statuses(this.redisClusterId, this.now() < this.laneLease.aliveUntil)
  }

  watcherAt(space: KeySpace, slot: number): TrackingWatcher | undefined {
    return this.#watchers.at(space, slot)
  }

  guard(hot: HotKey, pttlMs: number, watcher: TrackingWatcher): { lease: Lease; ttlMs: number } {
    const { leaseMs, fallbackTtlMs } = this.#options
    const bounds = { strategy: hot.handling.strategy, pttlMs, rightsMs: hot.space.upstream.rightsMs }
    return lifeOf(bounds, { watcher, leaseMs, lane: this.laneLease, fallbackTtlMs }, this.now())
  }

  makeLimit(space: KeySpace, key: string, strategy: RateLimitStrategy): KeyLimit | undefined {
    if (key.startsWith(limitKeyPrefix)) return undefined
    // Whoever reads the key of a database, its limit is one.
    for (const other of this.#spaces.values()) {
      const limit = other.database === space.database ? other.hot.get(key)?.limit : undefined
      if (limit?.isFor(strategy) === true) return limit
    }
    const { limits, timers } = this.#options
    return new KeyLimit({ key, strategy, redis: this.limitRedis, timers, ...limits })
  }

  makeDiskReplies({ id }: KeySpace, name: string): DiskReplies | undefined {
    const { diskTier } = this.#options
    return diskTier && new DiskReplies(diskTier, `${this.redisClusterId}\n${id}\n${name}`)
  }

  kept(hot: HotKey): void {
    this.caches.kept(hot, this.now())
  }

  released(hot: HotKey): void {
    this.caches.released(hot)
  }

  close(): void {
    this.isActive = false
    for (const hot of this.#hotKeys()) hot.close()
    this.#canary.close()
    this.#watchers.stop()
    this.flush()
  }

  /** Hands a hot key's reads from memory to the counter: where nothing else is read, they make a report due. */
  #takeReads(hot: HotKey): void {
    if (hot.uncounted > 0) this.#accesses.byBytes.addReads(hot.bytes, hot.uncounted)
    hot.uncounted = 0
  }

  *#hotKeys(): Generator<HotKey> {
    for (const space of this.#spaces.values()) yield* space.hot.values()
  }

  #apply(space: KeySpace): void {
    for (const [name, hot] of space.hot) {
      if (this.#handlings.has(name)) continue
      this.tally.takeKey(hot)
      hot.resetEffect()
      this.#takeReads(hot)
      hot.close()
      space.remove(hot)
    }
    for (const [name, handling] of this.#handlings) {
      const hot = space.hot.get(name)
      if (hot === undefined) space.add(new HotKey(name, space, handling))
      else hot.setHandling(handling)
    }
  }

  #invalidated(names: readonly string[]): void {
    // Tracking does not say which database: the key is dropped in all.
    for (const space of this.#spaces.values()) {
      for (const name of names) {
        this.#dropKey(space, name, (hot) => {
          hot.copies?.changed()
          if (hot.isConsistent) hot.dropReplies()
        })
      }
    }
  }

  #dropKey(space: KeySpace, name: string, drop: (hot: HotKey) => void): void {
    const hot = space.hot.get(name)
    if (hot === undefined) return
    this.tally.invalidations++
    drop(hot)
  }

  #nodeLost(node: string): void {
    this.tally.flushes++
    this.#options.diskTier?.distrust()
    for (const hot of this.#hotKeys()) if (hot.node === node && hot.isConsistent) hot.dropReplies()
  }
}
