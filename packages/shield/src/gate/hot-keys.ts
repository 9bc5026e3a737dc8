import { type Invalidation, TimingWheel } from '@firebreak/core'
import type { Handling } from '../cache/handling.ts'
import { HotKey } from '../cache/hot-key.ts'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import type { AccessLog } from '../counting/access-log.ts'
import type { Tally } from '../status/tally.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'
import type { HotName } from './hot-name.ts'
import { HotNames } from './hot-names.ts'
import { KeySpace } from './key-space.ts'
import { SlotOwners } from './slot-owners.ts'

/** As whom keys are read, where that is not the application itself. */
export interface SpaceIdentity {
  readonly id: string
  readonly upstream: Upstream
}

type HotAccesses = Pick<AccessLog, 'hashOf' | 'addReads' | 'outside'>

/** Slots that are looked at in a tick: all 16,384 of a cluster within half a second. */
const slotsPerTick = 2048
const copyTickMs = 50

/**
 * The hot keys of one Redis in all of its key spaces: makes them, lets them go, and drops what they keep when it must. What
 * happens often looks only at the keys that have something to be looked at; a key at rest costs nothing.
 */
export class HotKeys {
  readonly spaces: ReadonlyMap<string, KeySpace>
  readonly names: HotNames
  readonly #spaces: Map<string, KeySpace>
  readonly #upstream: Upstream
  readonly #shared: SharedByKeys
  readonly #tally: Tally
  readonly #accesses: HotAccesses
  readonly #owners = new Map<Upstream, SlotOwners>()
  /** Names whose keys have copies; these live whether anybody reads them or not. */
  readonly #copied = new Set<HotName>()
  readonly #copyTimers: TimingWheel<HotKey>
  #spacesVersion = 0

  /** `spaces` is empty; others may look at it. */
  constructor(
    spaces: Map<string, KeySpace>,
    upstream: Upstream,
    shared: SharedByKeys,
    tally: Tally,
    accesses: HotAccesses,
  ) {
    this.spaces = this.#spaces = spaces
    this.#upstream = upstream
    this.#shared = shared
    this.#tally = tally
    this.#accesses = accesses
    this.names = new HotNames({
      hashOf: (bytes) => accesses.hashOf(bytes),
      outside: (name) => accesses.outside(name),
      make: (name, space) => this.#make(name, space),
    })
    const { clock } = shared.runtime
    this.#copyTimers = new TimingWheel({ clock, tickMs: copyTickMs, onDue: (hot) => this.#tickCopies(hot) })
  }

  /** Every hot key of every space that somebody has asked for. */
  *[Symbol.iterator](): Generator<HotKey> {
    for (const space of this.#spaces.values()) yield* space.made
  }

  /** Grows whenever other watchers may be needed than before. */
  get watchersVersion(): number {
    let version = this.#spacesVersion
    for (const owners of this.#owners.values()) version += owners.version
    return version
  }

  /** The key space of a database, as the application reads it or as another identity with its own upstream does. */
  space(database: number, identity?: SpaceIdentity): KeySpace {
    const identityId = identity?.id ?? ''
    const known = this.#spaces.get(`${database} ${identityId}`)
    if (known !== undefined) return known
    const space = new KeySpace(identityId, database, identity?.upstream ?? this.#upstream, this.names)
    this.#spaces.set(space.id, space)
    this.#spacesVersion++
    for (const name of this.#copied) name.in(space)
    return space
  }

  /** Nobody reads as this identity any more. */
  forget(identityId: string): void {
    for (const space of this.#spaces.values()) {
      if (space.identity !== identityId) continue
      this.#spaces.delete(space.id)
      this.#spacesVersion++
      for (const hot of space.made) {
        this.#letGo(hot)
        this.names.get(hot.name)?.leave(space)
      }
    }
    const upstreams = new Set([...this.#spaces.values()].map(({ upstream }) => upstream))
    for (const upstream of this.#owners.keys()) if (!upstreams.has(upstream)) this.#owners.delete(upstream)
  }

  /** A name is hot from now on, or what is done with it is another. */
  set(name: string, handling: Handling): HotName {
    const known = this.names.get(name)
    if (known === undefined) {
      const made = this.names.add(name, handling)
      this.#serve(made, 1)
      this.#equip(made)
      return made
    }
    if (known.handling.strategy === handling.strategy) {
      this.names.change(known, handling)
      for (const hot of known.keys()) hot.handling = handling
      return known
    }
    this.#serve(known, -1)
    this.names.change(known, handling)
    this.#serve(known, 1)
    for (const hot of known.keys()) {
      hot.setHandling(handling)
      this.#timeCopies(hot)
    }
    this.#equip(known)
    return known
  }

  /** A name is no longer hot. */
  delete(name: HotName): void {
    this.#serve(name, -1)
    this.names.remove(name)
    this.#copied.delete(name)
    for (const hot of name.keys()) this.#letGo(hot)
  }

  /** Hands the reads from memory to the counter: where nothing else is read, they make a report due. */
  countReads(): void {
    for (const hot of this.#shared.touched) this.countReadsOf(hot)
  }

  /** Looks after what changes without a word: copies, and the nodes of what is kept. */
  tick(): void {
    this.#copyTimers.advance()
    let hasMoved = false
    for (const owners of this.#owners.values()) {
      hasMoved = owners.look(Math.ceil(slotsPerTick / this.#owners.size)) || hasMoved
    }
    if (!hasMoved) return
    for (const hot of this.#shared.kept) if (hot.space.upstream.nodeOf(hot.slot) !== hot.node) hot.drop()
  }

  /** The watchers that must stay awake: a connection that rests is not known to be dead. */
  watchersInUse(of: (space: KeySpace, node: string) => TrackingWatcher): Set<TrackingWatcher> {
    const used = new Set<TrackingWatcher>()
    for (const space of this.#spaces.values()) {
      for (const node of this.#ownersOf(space.upstream).nodes) used.add(of(space, node))
    }
    for (const name of this.#copied) {
      for (const { copies, space } of name.keys()) {
        for (const slot of copies?.slots ?? []) {
          const node = space.upstream.nodeOf(slot)
          if (node !== undefined) used.add(of(space, node))
        }
      }
    }
    return used
  }

  /** Drops everything that is kept and poisons what is in flight. */
  flush(): void {
    this.#distrust()
    for (const hot of this) hot.flush()
  }

  /** Messages of the hub's lane may be missing. */
  laneMissed(): void {
    this.#distrust()
    for (const hot of this) hot.laneMissed()
  }

  /** A command that changes keys without naming them is about to go out: as `flush`, and nobody waits for us. */
  abandon(): void {
    this.#distrust()
    for (const hot of this) hot.abandon()
  }

  /** A message of the hub's invalidation lane. */
  invalidate({ kind, items, database }: Invalidation): void {
    if (kind === 'flush' && database < 0) this.flush()
    for (const space of this.#spaces.values()) {
      if (database >= 0 && space.database !== database) continue
      if (kind === 'flush') for (const hot of space.made) hot.flush()
      for (const { key, value, ttlMs } of items) this.#change(space, key, (hot) => laneChanged(hot, value, ttlMs))
    }
  }

  /** A watcher told of changes. Tracking does not say in which database: the keys are dropped in all. */
  changed(names: readonly string[]): void {
    for (const space of this.#spaces.values()) for (const name of names) this.#change(space, name, watcherChanged)
  }

  /** What was read from a node is no longer guarded. */
  nodeLost(node: string): void {
    this.#distrust()
    for (const hot of this.#shared.kept) if (hot.node === node && hot.isConsistent) hot.dropReplies()
    for (const name of this.#copied) {
      for (const hot of name.keys()) if (hot.space.upstream.nodeOf(hot.slot) === node) hot.copies?.missed()
    }
  }

  close(): void {
    for (const hot of this) hot.close()
  }

  #distrust(): void {
    this.#tally.flushes++
    this.#shared.diskTier?.distrust()
  }

  #change(space: KeySpace, name: string, change: (hot: HotKey) => void): void {
    const hot = space.hot.peek(name)
    if (hot === undefined) return
    this.#tally.invalidations++
    change(hot)
  }

  countReadsOf(hot: HotKey): void {
    if (hot.uncounted > 0) this.#accesses.addReads(hot.bytes, hot.uncounted)
    hot.uncounted = 0
  }

  #make(name: HotName, space: KeySpace): HotKey {
    const hot = new HotKey(name.name, space, name.handling, this.#shared, name.bytes)
    space.made.add(hot)
    this.#timeCopies(hot)
    return hot
  }

  #letGo(hot: HotKey): void {
    this.#tally.takeKey(hot)
    hot.resetEffect()
    this.countReadsOf(hot)
    hot.close()
    hot.space.made.delete(hot)
  }

  /** Notes which nodes' watchers the name needs, or no longer does. */
  #serve(name: HotName, change: 1 | -1): void {
    if (!name.isServed) return
    for (const owners of this.#owners.values()) {
      if (change === 1) owners.add(name)
      else owners.remove(name)
    }
  }

  #ownersOf(upstream: Upstream): SlotOwners {
    let owners = this.#owners.get(upstream)
    if (owners === undefined) {
      owners = new SlotOwners(upstream)
      this.#owners.set(upstream, owners)
      for (const name of this.names.values()) if (name.isServed) owners.add(name)
    }
    return owners
  }

  /** Copies and limits are there before the first read: those that are shared take their time. */
  #equip(name: HotName): void {
    const { strategy } = name.handling.strategy
    if (strategy !== 'RedundantKeys') this.#copied.delete(name)
    if (strategy !== 'RedundantKeys' && strategy !== 'RateLimit') return
    for (const space of this.#spaces.values()) name.in(space)
    if (strategy !== 'RedundantKeys') return
    this.#copied.add(name)
    this.#spacesVersion++
  }

  #timeCopies(hot: HotKey, delayMs = 0): void {
    if (hot.copies === undefined || hot.areCopiesTimed) return
    hot.areCopiesTimed = this.#copyTimers.set(delayMs, hot)
  }

  #tickCopies(hot: HotKey): void {
    hot.areCopiesTimed = false
    if (hot.copies !== undefined) this.#timeCopies(hot, hot.copies.tick())
  }
}

function watcherChanged(hot: HotKey): void {
  hot.copies?.changed()
  if (hot.isConsistent) hot.dropReplies()
}

/**
 * The hub's lane told of a change, perhaps with the new value. A carried value may be older than what was read since, so
 * it is served only where the strategy lets values be old; what is consistent is dropped and read again.
 */
function laneChanged(hot: HotKey, value: Uint8Array | undefined, ttlMs = Number.POSITIVE_INFINITY): void {
  const { strategy } = hot.handling
  if (value === undefined || strategy.strategy !== 'LocalCache' || strategy.consistent) hot.drop()
  else hot.renew(value, Math.min(strategy.expireTime * 1000, strategy.maxStalenessMs ?? ttlMs, ttlMs))
}
