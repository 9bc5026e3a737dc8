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

/** The identity that keys are read as, if it is not the application itself. */
export interface SpaceIdentity {
  readonly id: string
  readonly upstream: Upstream
}

type HotAccesses = Pick<AccessLog, 'hashOf' | 'addReads' | 'outside'>

/** Slots checked per tick: all 16,384 of a cluster within half a second. */
const slotsPerTick = 2048
const copyTickMs = 50
/** How often the placement of copies is reported again: a hub may have restarted. */
const tellAgainMs = 5000

/**
 * The hot keys of one Redis in all of its key spaces: creates them, releases them, and drops what they keep when it
 * must. Frequent work only looks at keys that need it; a key at rest costs nothing.
 */
export class ClusterHotKeys {
  readonly spaces: ReadonlyMap<string, KeySpace>
  readonly names: HotNames
  readonly #spaces: Map<string, KeySpace>
  readonly #upstream: Upstream
  readonly #shared: SharedByKeys
  readonly #tally: Tally
  readonly #accesses: HotAccesses
  readonly #owners = new Map<Upstream, SlotOwners>()
  /** Names whose keys have copies, which are maintained whether or not anybody reads them. */
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

  /** Every hot key of every space that was ever requested. */
  *[Symbol.iterator](): Generator<HotKey> {
    for (const space of this.#spaces.values()) yield* space.made
  }

  /** Incremented whenever the set of needed watchers may have changed. */
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
      space.isClosed = true
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

  /** A name is hot from now on, or its handling has changed. */
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

  /** Passes the reads from memory to the counter: if nothing else is read, they make a report due. */
  countReads(): void {
    for (const hot of this.#shared.touched) this.countReadsOf(hot)
  }

  /** Maintains what changes silently: copies, and the nodes of what is kept. */
  tick(): void {
    this.#copyTimers.advance()
    let hasMoved = false
    for (const owners of this.#owners.values()) {
      hasMoved = owners.look(Math.ceil(slotsPerTick / this.#owners.size)) || hasMoved
    }
    if (!hasMoved) return
    for (const hot of this.#shared.kept) if (hot.space.upstream.nodeOf(hot.slot) !== hot.node) hot.drop()
  }

  /** The watchers that must stay awake: a resting connection is not known to be dead. */
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

  /** Where the copies of keys are, unless reported recently; at most `most` keys. */
  placedCopies(most: number): { readonly name: string; readonly names: string[]; readonly isRefresher: boolean }[] {
    const now = this.#shared.runtime.clock.now()
    const placed = []
    for (const name of this.#copied) {
      if (placed.length >= most) break
      // A table does not know databases: nearly always there is one.
      const copies = [...name.keys()].sort((a, b) => a.space.database - b.space.database)[0]?.copies
      if (copies === undefined) continue
      const { writtenNames: names, isRefresher, told } = copies
      const text = `${isRefresher} ${names.join('\n')}`
      if (names.length === 0 || (told?.names === text && now - told.at < tellAgainMs)) continue
      copies.told = { names: text, at: now }
      placed.push({ name: name.name, names, isRefresher })
    }
    return placed
  }

  /** The keys of the same names in all spaces in which they were requested. */
  everywhere(hots: readonly HotKey[]): HotKey[] {
    return [...new Set(hots.flatMap((hot) => [hot, ...(this.names.get(hot.name)?.keys() ?? [])]))]
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

  /**
   * A command that changes keys without naming them is about to be sent: like `flush`, and readers no longer wait for
   * us.
   */
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

  /** A watcher reported changes. Tracking does not say in which database, so the keys are dropped in all. */
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

  /** Sends all waiting increments: from now on nobody checks whether a command may overtake one. */
  release(): void {
    for (const hot of this) hot.release()
  }

  /** The kill switch was turned on or off. */
  switched(): void {
    for (const hot of this) {
      hot.switched()
      this.#timeCopies(hot)
    }
    this.#spacesVersion++
  }

  close(): void {
    for (const space of this.#spaces.values()) space.isClosed = true
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
    const hot = new HotKey(name.name, space, name.handling, this.#shared, name.keptBytes)
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

  /** Records which nodes' watchers the name needs, or no longer does. */
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

  /** Creates copies and limits before the first read: the shared ones take their time. */
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
 * The hub's lane reported a change, perhaps with the new value. A carried value may be older than what was read since,
 * so it is served only if the strategy allows old values; otherwise the key is dropped and read again.
 */
function laneChanged(hot: HotKey, value: Uint8Array | undefined, ttlMs = Number.POSITIVE_INFINITY): void {
  const { strategy } = hot.handling
  if (value === undefined || strategy.strategy !== 'LocalCache' || strategy.consistent) hot.drop()
  else hot.renew(value, Math.min(strategy.expireTime * 1000, strategy.maxStalenessMs ?? ttlMs, ttlMs))
}
