import type { Invalidation, KeyEffect, Rule, Runtime, TableEntry, WatcherStatus } from '@firebreak/core'
import type { Redis } from '@firebreak/redis'
import type { Handling } from './cache/handling.ts'
import type { HotKey } from './cache/hot-key.ts'
import { ReplyCaches } from './cache/reply-caches.ts'
import { Canary } from './canary/canary.ts'
import { nodesOf } from './copies/place-copies.ts'
import { AccessLog, type AccessVisitor } from './counting/access-log.ts'
import type { ByteAccesses } from './counting/byte-accesses.ts'
import type { Crossing } from './counting/fast-path.ts'
import type { DiskTier } from './disk/disk-tier.ts'
import { Gate } from './gate/gate.ts'
import { HotKeys, type SpaceIdentity } from './gate/hot-keys.ts'
import type { KeySpace } from './gate/key-space.ts'
import type { LimitBounds } from './limit/key-limit.ts'
import { KeyLimits } from './limit/key-limits.ts'
import { keyEffect } from './status/key-effect.ts'
import { Tally } from './status/tally.ts'
import type { Trouble } from './trouble/trouble.ts'
import { ClusterWatchers } from './watcher/cluster-watchers.ts'
import { LaneLease } from './watcher/lease.ts'
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
  readonly runtime: Runtime
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
 * keeps their replies and the watchers that guard them. Hooks of a client and connections of a proxy ask its gate.
 */
export class ClusterShield {
  readonly redisClusterId: string
  readonly tally = new Tally()
  readonly caches = new ReplyCaches()
  /** What the hub's lane guards where tracking is refused. */
  readonly laneLease = new LaneLease()
  /** Decides what becomes of a command. */
  readonly gate: Gate
  /** False while the kill switch is thrown: hooks pass everything through, uncounted. */
  isActive = true
  /** True while some key of this Redis is hot; hooks need not look further while it is not. */
  hasHotKeys = false
  readonly #options: ClusterShieldOptions
  readonly #accesses: AccessLog
  readonly #keys: HotKeys
  readonly #limits: KeyLimits
  readonly #watchers: ClusterWatchers
  readonly #claims = new Map<string, Handling>()
  readonly #hotListeners = new Set<() => void>()
  readonly #canary: Canary
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: ClusterShieldOptions) {
    const { runtime, upstream, limits, leaseMs, fallbackTtlMs } = options
    this.redisClusterId = options.redisClusterId
    this.#options = options
    this.#accesses = new AccessLog({ ...options, random: runtime.random })
    this.#watchers = new ClusterWatchers({
      ...options,
      ...runtime,
      onInvalidated: (names) => this.#keys.changed(names),
      onNodeLost: (node) => this.#keys.nodeLost(node),
    })
    const spaces = new Map<string, KeySpace>()
    this.#limits = new KeyLimits(limits, runtime.timers, spaces)
    const shared = {
      ...options,
      watchers: this.#watchers,
      caches: this.caches,
      limits: this.#limits,
      guards: { lane: this.laneLease, leaseMs, fallbackTtlMs },
    }
    this.#keys = new HotKeys(spaces, upstream, shared, this.tally, this.#accesses)
    this.gate = new Gate(this.#keys, this.tally)
    this.#canary = new Canary({ ...options, ...runtime, everyMs: options.canaryMs })
  }

  /** Where limits that all processes share are counted. */
  get limitRedis(): Redis | undefined {
    return this.#limits.redis
  }

  set limitRedis(redis: Redis | undefined) {
    this.#limits.redis = redis
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
    return this.#options.runtime.clock.now()
  }

  /** The key space of a database, as the application reads it or as another identity with its own upstream does. */
  space(database: number, identity?: SpaceIdentity): KeySpace {
    return this.#keys.space(database, identity)
  }

  /** Nobody reads as this identity any more: its key spaces and its connections end. */
  forget(identityId: string): void {
    this.#keys.forget(identityId)
    this.#watchers.forget(identityId)
  }

  /** True while a key is handled, by the table or by a claim of this process. */
  isHot(name: string): boolean {
    return this.isActive && this.#keys.handlings.has(name)
  }

  /** What is hot, by its outside name. */
  *hotNames(): Generator<[outside: string, handling: Handling]> {
    for (const [name, handling] of this.#keys.handlings) yield [this.#accesses.outside(name), handling]
  }

  /** Counts one access of a key. */
  count(name: string, isWrite: boolean, bytes = 0): void {
    this.#accesses.count(name, isWrite, bytes)
  }

  /** Counts accesses by the bytes of their keys. */
  get byBytes(): ByteAccesses {
    return this.#accesses.byBytes
  }

  /** Drops everything that is kept and poisons what is in flight. */
  flush(): void {
    this.#keys.flush()
  }

  /** Messages of the hub's invalidation lane may be missing. */
  laneMissed(): void {
    this.#keys.laneMissed()
  }

  /** A message of the hub's invalidation lane. */
  invalidate(invalidation: Invalidation): void {
    this.#keys.invalidate(invalidation)
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
    this.#keys.setHandlings(handlings)
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
    this.#keys.countReads()
    const { count, writes } = this.#accesses.drain(visitor, this.now())
    this.tally.reads += count - writes
    this.tally.writes += writes
    return count
  }

  /** Handles a key that this process alone made hot; true where it was not handled before. */
  claim(name: string, { strategy, ruleId }: Crossing, hubNow: number): boolean {
    const known = this.#keys.handlings.get(name)
    if (known !== undefined && !known.isClaim) return false
    this.#claims.set(name, { strategy, ruleId, until: hubNow + claimHoldMs, isClaim: true })
    return known === undefined
  }

  /** Looks after the watchers, often: idle ones rest, a key whose node changed is dropped. */
  tick(): void {
    this.#accesses.flush()
    this.#keys.countReads()
    const used = new Set<TrackingWatcher>()
    const slots = new Map<number, HotKey>()
    for (const hot of this.#keys) {
      const { space, slot } = hot
      for (const readSlot of hot.readSlots) {
        const watcher = this.#watchers.at(space, readSlot)
        if (watcher !== undefined) used.add(watcher)
      }
      hot.copies?.tick()
      if (!hot.hasReplies) continue
      if (space.upstream.nodeOf(slot) !== hot.node) hot.drop()
      else if (space.upstream.isCluster) slots.set(slot, hot)
    }
    this.#watchers.setUsed(used)
    this.#canary.tick(() => this.#keys)
    if (this.now() - this.#probedAt < slotPollMs) return
    this.#probedAt = this.now()
    for (const hot of slots.values()) this.#probe(hot)
  }

  /** Asks the node of a cached key whether the slot is still its own: a cached NIL whose slot moves gets no push. */
  #probe({ watcher, space, slot, bytes }: HotKey): void {
    watcher?.probe(bytes, () => {
      space.upstream.refresh?.()
      for (const other of space.hot.values()) if (other.slot === slot) other.drop()
    })
  }

  /** What each hot key's strategy did since the last call. */
  takeEffects(): KeyEffect[] {
    const effects: KeyEffect[] = []
    for (const hot of this.#keys) {
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

  close(): void {
    this.isActive = false
    this.#keys.close()
    this.#canary.close()
    this.#watchers.stop()
    this.flush()
  }
}
