import {
  type Invalidation,
  type KeyEffect,
  type Runtime,
  secretSeed,
  type TableEntry,
  type WatcherStatus,
} from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { Redis } from '@firebreak/redis'
import type { HotKey } from './cache/hot-key.ts'
import { KeptKeys, TouchedKeys } from './cache/key-lists.ts'
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
import { ClusterTable } from './table/cluster-table.ts'
import type { Trouble } from './trouble/trouble.ts'
import { ClusterWatchers } from './watcher/cluster-watchers.ts'
import { LaneLease } from './watcher/lease.ts'
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
  /** What time it is at the hub. */
  readonly hubNow: () => number
  readonly trouble: Trouble
  /** Where replies go that memory has no room for. */
  readonly diskTier: DiskTier | undefined
  /** One key grows fast: a report is wanted at once. */
  readonly onBurst: () => void
}

/** How often the owner of a cached key's slot is asked, on a cluster. */
const slotPollMs = 500
/** Slots that are asked about at a time; where more keep replies, they take turns. */
const maxProbes = 256
/** How often it is worked out which watchers are needed, even where nothing is known to have changed. */
const watchersMs = 500
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
  readonly #table: ClusterTable
  readonly #kept = new KeptKeys()
  readonly #touched = new TouchedKeys()
  readonly #hotListeners = new Set<() => void>()
  readonly #canary: Canary
  #probedAt = Number.NEGATIVE_INFINITY
  #probedTo = 0
  #watchersAt = Number.NEGATIVE_INFINITY
  #watchersVersion = -1

  constructor(options: ClusterShieldOptions) {
    const { runtime, upstream, limits, leaseMs, fallbackTtlMs } = options
    this.redisClusterId = options.redisClusterId
    this.#options = options
    this.#accesses = new AccessLog({ ...options, seed: secretSeed(runtime) })
    this.#watchers = new ClusterWatchers({
      ...options,
      ...runtime,
      onInvalidated: (names) => this.#keys.changed(names),
      onNodeLost: (node) => this.#keys.nodeLost(node),
    })
    const spaces = new Map<string, KeySpace>()
    this.#limits = new KeyLimits(limits, runtime, spaces)
    const shared = {
      ...options,
      watchers: this.#watchers,
      caches: this.caches,
      limits: this.#limits,
      kept: this.#kept,
      touched: this.#touched,
      guards: { lane: this.laneLease, leaseMs, fallbackTtlMs },
    }
    this.#keys = new HotKeys(spaces, upstream, shared, this.tally, this.#accesses)
    this.#table = new ClusterTable({
      keys: this.#keys,
      accesses: this.#accesses,
      clock: runtime.clock,
      hubNow: options.hubNow,
      isRedacting: this.#accesses.isRedacting,
    })
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
    return this.isActive && this.#keys.names.get(name) !== undefined
  }

  /** How many keys are hot, by strategy and by the group of their outside names. */
  get hotCounts(): Pick<HotKeys['names'], 'strategies' | 'groups'> {
    return this.#keys.names
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

  /** Takes this cluster's part of a table whole; entries of other clusters are passed over. */
  setTable(entries: Iterable<TableEntry>): void {
    this.#table.reset(ownEntries(entries, this.redisClusterId))
    this.#heated()
  }

  /** Takes what has changed in this cluster's part of the table. */
  changeTable(set: readonly TableEntry[], removed: readonly string[]): void {
    for (const key of removed) this.#table.remove(key)
    for (const entry of set) this.#table.set(entry)
    this.#heated()
  }

  /** Without a hub for long, limits end; `entries` is the table of all clusters, for when they hold again. */
  setLimitsLapsed(areLapsed: boolean, entries: () => Iterable<TableEntry>): void {
    this.#table.setLimitsLapsed(areLapsed, () => ownEntries(entries(), this.redisClusterId))
    this.#heated()
  }

  #heated(): void {
    const hasHotKeys = this.#keys.names.size > 0
    if (this.hasHotKeys === hasHotKeys) return
    this.hasHotKeys = hasHotKeys
    for (const listener of this.#hotListeners) listener()
  }

  /** Calls back whenever `hasHotKeys` changes; the returned function ends this. */
  onHotKeys(listener: () => void): () => void {
    this.#hotListeners.add(listener)
    return () => void this.#hotListeners.delete(listener)
  }

  /** Keys may have been seen whose outside names the table has; `entryOf` is asked. */
  takeNews(entryOf: (outside: string) => TableEntry | undefined): void {
    for (const name of this.#accesses.takeNews()) {
      const entry = entryOf(this.#accesses.outside(name))
      if (entry !== undefined) this.#table.seen(name, entry)
    }
    this.#heated()
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
  claim(name: string, crossing: Crossing): boolean {
    const isNew = this.#table.claim(name, crossing)
    this.#heated()
    return isNew
  }

  /** Looks after the watchers, often: idle ones rest, a key whose node changed is dropped, one that lapsed let go. */
  tick(): void {
    this.#accesses.flush()
    this.#keys.countReads()
    this.#table.tick()
    this.#heated()
    this.#keys.tick()
    this.#canary.tick(this.#kept)
    const now = this.now()
    const version = this.#keys.watchersVersion
    if (version !== this.#watchersVersion || now - this.#watchersAt >= watchersMs) {
      this.#watchers.setUsed(this.#keys.watchersInUse((space, node) => this.#watchers.of(space, node)))
      this.#watchersAt = now
      // Making it may have been the first look at a space's slots.
      this.#watchersVersion = this.#keys.watchersVersion
    }
    if (now - this.#probedAt < slotPollMs) return
    this.#probedAt = now
    this.#probeSlots()
  }

  /**
   * Asks whether the slots of what is kept are still where they were. Keys take turns where there are too many; their slots
   * are spread over all nodes, so a node that lost all of its own is found out at once all the same.
   */
  #probeSlots(): void {
    const kept = this.#kept
    const slots = new Set<string>()
    for (let left = Math.min(kept.size, maxProbes * 4); left > 0 && slots.size < maxProbes; left--) {
      if (this.#probedTo >= kept.size) this.#probedTo = 0
      const hot = kept.at(this.#probedTo++)
      const id = `${hot.space.id} ${hot.slot}`
      if (!hot.hasReplies) kept.remove(hot)
      else if (hot.space.upstream.isCluster && !slots.has(id)) {
        slots.add(id)
        this.#probe(hot)
      }
      if (kept.size === 0) return
    }
  }

  /** Asks the node of a cached key whether the slot is still its own: a cached NIL whose slot moves gets no push. */
  #probe({ watcher, space, slot, bytes }: HotKey): void {
    watcher?.probe(bytes, () => {
      space.upstream.refresh?.()
      for (const other of this.#kept) if (other.space === space && other.slot === slot) other.drop()
    })
  }

  /** What each hot key's strategy did since the last call. */
  takeEffects(): KeyEffect[] {
    const effects: KeyEffect[] = []
    for (const hot of this.#touched.take()) {
      this.#keys.countReadsOf(hot)
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

function* ownEntries(entries: Iterable<TableEntry>, redisClusterId: string): Generator<TableEntry> {
  for (const entry of entries) if (entry.redisClusterId === redisClusterId) yield entry
}
