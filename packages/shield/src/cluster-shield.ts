import {
  type InspectedPayload,
  type Invalidation,
  type KeyEffect,
  keyBytes,
  keyText,
  type PlacedCopiesPayload,
  type Runtime,
  secretSeed,
  type TableEntry,
  type WatcherStatus,
} from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { Rule } from '@firebreak/core/rules'
import type { RetryPolicy } from '@firebreak/core/settings'
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
import { ClusterHotKeys, type SpaceIdentity } from './gate/cluster-hot-keys.ts'
import { Gate } from './gate/gate.ts'
import { HeardCommands } from './gate/heard-commands.ts'
import type { KeySpace } from './gate/key-space.ts'
import type { LimitBounds } from './limit/key-limit.ts'
import { KeyLimits } from './limit/key-limits.ts'
import { keyEffect } from './status/key-effect.ts'
import { Tally } from './status/tally.ts'
import { ClusterTable } from './table/cluster-table.ts'
import { allAtOnce, type Steps } from './table/turn-queue.ts'
import type { Trouble } from './trouble/trouble.ts'
import { ClusterWatchers } from './watcher/cluster-watchers.ts'
import { inspectKey } from './watcher/inspect-key.ts'
import { LaneLease } from './watcher/lease.ts'
import type { Upstream } from './watcher/upstream.ts'

type Heard = Pick<InspectedPayload, 'commands' | 'heardMs'>

/** What a cluster's shield is built from. */
export interface ClusterShieldOptions {
  readonly redisClusterId: string
  readonly serviceId: string
  /** Identifies this process in the fleet. */
  readonly processId: string
  readonly upstream: Upstream
  readonly leaseMs: number
  readonly trackingRetry: RetryPolicy
  readonly fallbackTtlMs: number
  readonly canaryMs: number
  readonly maxKeys: number
  readonly limits: LimitBounds
  readonly redactKey: ((key: string) => string) | undefined
  readonly runtime: Runtime
  /** The current time at the hub. */
  readonly hubNow: () => number
  readonly trouble: Trouble
  /** Takes replies that do not fit in memory. */
  readonly diskTier: DiskTier | undefined
  /** One key is growing fast: a report is wanted at once. */
  readonly onBurst: () => void
}

/** On a cluster: how often the owners of cached keys' slots are asked. */
const slotPollMs = 500
/** Slots asked about at a time; if more have replies, they take turns. */
const maxProbes = 256
/** How often the needed watchers are worked out, even if nothing is known to have changed. */
const watchersMs = 500
/** How long a question waits for a connection to its node. */
const inspectWaitMs = 1000
/** How long commands on an inspected key are counted; a hub waits five seconds for the answer. */
const hearMs = 1000
/** Keys whose copies one status reports. */
const maxPlaced = 200
/** Keys that one status reports. */
const maxEffects = 5000

/**
 * The shield of one Redis (a server, a Sentinel group, a cluster): counts its accesses, knows which of its keys are
 * hot, and holds their replies and the watchers that guard them. A client's hooks and a proxy's connections ask its
 * gate.
 */
export class ClusterShield {
  readonly redisClusterId: string
  readonly tally = new Tally()
  readonly caches = new ReplyCaches()
  /** What the hub's lane guards if tracking is refused. */
  readonly laneLease = new LaneLease()
  /** Decides what happens to a command. */
  readonly gate: Gate
  /** False while the kill switch is on: hooks pass everything through, uncounted. */
  #isActive = true
  readonly #hearing = new Map<string, Promise<Heard>>()
  /** True while any key of this Redis is hot; hooks need not look any further otherwise. */
  hasHotKeys = false
  readonly #options: ClusterShieldOptions
  readonly #accesses: AccessLog
  readonly #keys: ClusterHotKeys
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
    this.#limits = new KeyLimits(limits, runtime, spaces, options.serviceId)
    const shared = {
      ...options,
      watchers: this.#watchers,
      isActive: () => this.#isActive,
      caches: this.caches,
      limits: this.#limits,
      kept: this.#kept,
      touched: this.#touched,
      guards: { lane: this.laneLease, leaseMs, fallbackTtlMs },
    }
    this.#keys = new ClusterHotKeys(spaces, upstream, shared, this.tally, this.#accesses)
    this.#table = new ClusterTable({
      keys: this.#keys,
      accesses: this.#accesses,
      clock: runtime.clock,
      hubNow: options.hubNow,
      isRedacting: this.#accesses.isRedacting,
    })
    this.gate = new Gate(this.#keys, this.tally, runtime.timers, options.trouble)
    this.#canary = new Canary({ ...options, ...runtime, everyMs: options.canaryMs })
  }

  /** Where shared limits are counted. */
  get limitRedis(): Redis | undefined {
    return this.#limits.redis
  }

  set limitRedis(redis: Redis | undefined) {
    this.#limits.redis = redis
  }

  get isActive(): boolean {
    return this.#isActive
  }

  set isActive(isActive: boolean) {
    if (!isActive) this.#keys.release()
    this.#isActive = isActive
    this.#keys.switched()
  }

  /** True while an access only has to be counted. */
  get isCold(): boolean {
    return this.isActive && !this.hasHotKeys
  }

  /** Accesses of the current interval. */
  get countSoFar(): number {
    return this.#accesses.countSoFar
  }

  /** Number of masters of this Redis as the application sees them; 1 while unknown. */
  get nodeCount(): number {
    const { upstream } = this.#options
    return upstream.isCluster ? Math.max(1, nodesOf((slot) => upstream.nodeOf(slot)).length) : 1
  }

  get upstream(): Upstream {
    return this.#options.upstream
  }

  now(): number {
    return this.#options.runtime.clock.now()
  }

  /** The key space of a database, as read by the application or by another identity with its own upstream. */
  space(database: number, identity?: SpaceIdentity): KeySpace {
    return this.#keys.space(database, identity)
  }

  /** Nobody reads as this identity any more: ends its key spaces and connections. */
  forget(identityId: string): void {
    this.#keys.forget(identityId)
    this.#watchers.forget(identityId)
  }

  /** True while a key is handled, by the table or by this process' own claim. */
  isHot(name: string): boolean {
    return this.isActive && this.#keys.names.get(name) !== undefined
  }

  /** Number of hot keys, by strategy and by the group of their outside names. */
  get hotCounts(): Pick<ClusterHotKeys['names'], 'strategies' | 'groups'> {
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

  /** Handles a message of the hub's invalidation lane. */
  invalidate(invalidation: Invalidation): void {
    this.#keys.invalidate(invalidation)
  }

  setRules(rules: readonly Rule[]): void {
    this.#accesses.setRules(rules)
  }

  /** Replaces this cluster's part of the table; entries of other clusters are skipped. */
  setTable(entries: Iterable<TableEntry>): void {
    allAtOnce(this.tableSteps(entries))
  }

  /** `setTable` in steps. */
  *tableSteps(entries: Iterable<TableEntry>): Steps {
    const steps = this.#table.resetSteps(ownEntries(entries, this.redisClusterId))
    while (steps.next().done !== true) {
      this.#heated()
      yield
    }
    this.#heated()
  }

  /** Applies changes to this cluster's part of the table. */
  changeTable(set: readonly TableEntry[], removed: readonly string[]): void {
    for (const key of removed) this.#table.remove(key)
    for (const entry of set) this.#table.set(entry)
    this.#heated()
  }

  /** After a long time without a hub, limits end; `entries` is the table of all clusters, for when they apply again. */
  setLimitsLapsed(areLapsed: boolean, entries: () => Iterable<TableEntry>): void {
    this.#table.setLimitsLapsed(areLapsed, () => ownEntries(entries(), this.redisClusterId))
    this.#heated()
  }

  #heated(): void {
    const hasHotKeys = this.#keys.names.size > 0
    if (this.hasHotKeys === hasHotKeys) return
    this.hasHotKeys = hasHotKeys
    for (const listener of this.#hotListeners) this.#options.trouble.attempt(listener)
  }

  /** Calls back whenever `hasHotKeys` changes; the returned function unsubscribes. */
  onHotKeys(listener: () => void): () => void {
    this.#hotListeners.add(listener)
    return () => void this.#hotListeners.delete(listener)
  }

  /** Keys may have been seen whose outside names are in the table; `entryOf` looks them up. */
  takeNews(entryOf: (outside: string) => TableEntry | undefined): void {
    for (const name of this.#accesses.takeNews()) {
      const entry = entryOf(this.#accesses.outside(name))
      if (entry !== undefined) this.#table.seen(name, entry)
    }
    this.#heated()
  }

  /** Ends the interval: passes each key's counts to `visitor`; returns the total accesses. */
  drain(visitor: AccessVisitor): number {
    this.#keys.countReads()
    const { count, writes } = this.#accesses.drain(visitor, this.now())
    this.tally.reads += count - writes
    this.tally.writes += writes
    return count
  }

  /** Handles a key that this process alone made hot; true if it was not handled before. */
  claim(name: string, crossing: Crossing): boolean {
    const isNew = this.#table.claim(name, crossing)
    this.#heated()
    return isNew
  }

  /**
   * Called often to maintain the watchers: rests idle ones, drops keys whose node changed, and releases expired ones.
   */
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
      // Creating it may have been the first look at a space's slots.
      this.#watchersVersion = this.#keys.watchersVersion
    }
    if (now - this.#probedAt < slotPollMs) return
    this.#probedAt = now
    this.#probeSlots()
  }

  /**
   * Checks whether the slots of kept replies are still where they were. If there are too many, keys take turns; their
   * slots are spread over all nodes, so a node that lost all of its slots is still noticed at once.
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

  /** Asks the node of a cached key whether it still owns the slot: a cached NIL whose slot moves gets no push. */
  #probe({ watcher, space, slot, bytes }: HotKey): void {
    watcher?.probe(bytes, () => {
      space.upstream.refresh?.()
      for (const other of this.#kept) if (other.space === space && other.slot === slot) other.drop()
    })
  }

  /** The effect of each hot key's strategy since the last call. */
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

  /**
   * Where the copies of keys are, unless reported recently. Their names reveal the key's, so not if names are redacted.
   */
  takePlacedCopies(): PlacedCopiesPayload[] {
    const { redisClusterId } = this
    if (this.#accesses.isRedacting) return []
    return this.#keys.placedCopies(maxPlaced).map(({ name, names, isRefresher }) => ({
      redisClusterId,
      key: keyText(name),
      names: names.map(keyText),
      isRefresher,
    }))
  }

  watcherStatuses(): WatcherStatus[] {
    return this.#watchers.statuses(this.redisClusterId, this.now() < this.laneLease.aliveUntil)
  }

  /** Inspects a key over the watcher's connection to its node; undefined if none can be read. */
  async inspect(name: string, wantsValue: boolean): Promise<Omit<InspectedPayload, 'id'> | undefined> {
    const { runtime, redactKey } = this.#options
    if (redactKey !== undefined) return { problem: 'this process redacts the names of its keys' }
    const space = this.space(0)
    const bytes = keyBytes(name)
    const watcher = this.#watchers.at(space, keySlotOfBytes(bytes))
    // A watcher created for this question needs a moment.
    for (let waitedMs = 0; watcher !== undefined && !watcher.canRead && waitedMs < inspectWaitMs; waitedMs += 50)
      await new Promise<void>((resolve) => runtime.timers.setTimeout(resolve, 50))
    if (watcher?.canRead !== true) return undefined
    const ask = (command: Uint8Array) =>
      new Promise<Uint8Array | undefined>((resolve) =>
        watcher.transact(space.database, command, 1, (reply) => resolve(reply?.slice())),
      )
    const [found, heard] = await Promise.all([inspectKey(ask, bytes, wantsValue), this.#hear(name)])
    return { ...found, ...heard }
  }

  /** Counts the commands on a key for a while, if it is hot; who asks meanwhile gets the same answer. */
  #hear(name: string): Promise<Heard> | undefined {
    const hotName = this.#keys.names.get(name)
    if (hotName === undefined) return undefined
    const known = this.#hearing.get(name)
    if (known !== undefined) return known
    const { clock, timers } = this.#options.runtime
    const begunAt = clock.now()
    const commands = new HeardCommands(hotName.keys())
    const hearing = new Promise<Heard>((resolve) => {
      timers.setTimeout(() => {
        this.#hearing.delete(name)
        resolve({ commands: commands.stop(), heardMs: clock.now() - begunAt })
      }, hearMs)
    })
    this.#hearing.set(name, hearing)
    return hearing
  }

  close(): void {
    this.#keys.close()
    this.isActive = false
    this.#canary.close()
    this.#watchers.stop()
    this.flush()
  }
}

function* ownEntries(entries: Iterable<TableEntry>, redisClusterId: string): Generator<TableEntry> {
  for (const entry of entries) if (entry.redisClusterId === redisClusterId) yield entry
}
