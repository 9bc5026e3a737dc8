import type { Invalidation } from '@firebreak/core'
import type { Handling } from '../cache/handling.ts'
import { HotKey } from '../cache/hot-key.ts'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import type { AccessLog } from '../counting/access-log.ts'
import type { Tally } from '../status/tally.ts'
import type { Upstream } from '../watcher/upstream.ts'
import { KeySpace } from './key-space.ts'

/** As whom keys are read, where that is not the application itself. */
export interface SpaceIdentity {
  readonly id: string
  readonly upstream: Upstream
}

type HotAccesses = Pick<AccessLog, 'hashOf' | 'addReads'>

/** The hot keys of one Redis in all of its key spaces: makes them, lets them go, and drops what they keep when it must. */
export class HotKeys {
  readonly spaces: ReadonlyMap<string, KeySpace>
  readonly #spaces: Map<string, KeySpace>
  readonly #upstream: Upstream
  readonly #shared: SharedByKeys
  readonly #tally: Tally
  readonly #accesses: HotAccesses
  #handlings: ReadonlyMap<string, Handling> = new Map()

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
  }

  /** What is done with which key. */
  get handlings(): ReadonlyMap<string, Handling> {
    return this.#handlings
  }

  /** Every hot key of every space. */
  *[Symbol.iterator](): Generator<HotKey> {
    for (const space of this.#spaces.values()) yield* space.hot.values()
  }

  /** The key space of a database, as the application reads it or as another identity with its own upstream does. */
  space(database: number, identity?: SpaceIdentity): KeySpace {
    const identityId = identity?.id ?? ''
    const known = this.#spaces.get(`${database} ${identityId}`)
    if (known !== undefined) return known
    const space = new KeySpace(identityId, database, identity?.upstream ?? this.#upstream)
    this.#spaces.set(space.id, space)
    this.#apply(space)
    return space
  }

  /** Nobody reads as this identity any more. */
  forget(identityId: string): void {
    for (const space of this.#spaces.values()) {
      if (space.identity !== identityId) continue
      this.#spaces.delete(space.id)
      for (const hot of space.hot.values()) {
        this.#letGo(hot)
        hot.drop()
      }
    }
  }

  setHandlings(handlings: ReadonlyMap<string, Handling>): void {
    this.#handlings = handlings
    for (const space of this.#spaces.values()) this.#apply(space)
  }

  /** Hands the reads from memory to the counter: where nothing else is read, they make a report due. */
  countReads(): void {
    for (const hot of this) this.#countReads(hot)
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
      if (kind === 'flush') for (const hot of space.hot.values()) hot.flush()
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
    for (const hot of this) {
      if (hot.node === node && hot.isConsistent) hot.dropReplies()
      if (hot.space.upstream.nodeOf(hot.slot) === node) hot.copies?.missed()
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
    const hot = space.hot.get(name)
    if (hot === undefined) return
    this.#tally.invalidations++
    change(hot)
  }

  #countReads(hot: HotKey): void {
    if (hot.uncounted > 0) this.#accesses.addReads(hot.bytes, hot.uncounted)
    hot.uncounted = 0
  }

  #apply(space: KeySpace): void {
    for (const [name, hot] of space.hot) if (!this.#handlings.has(name)) this.#letGo(hot)
    for (const [name, handling] of this.#handlings) {
      const hot = space.hot.get(name)
      if (hot !== undefined) hot.setHandling(handling)
      else {
        const made = new HotKey(name, space, handling, this.#shared)
        space.add(made, this.#accesses.hashOf(made.bytes))
      }
    }
  }

  #letGo(hot: HotKey): void {
    this.#tally.takeKey(hot)
    hot.resetEffect()
    this.#countReads(hot)
    hot.close()
    hot.space.remove(hot)
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
