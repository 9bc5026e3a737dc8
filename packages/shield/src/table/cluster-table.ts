import { type Clock, type TableEntry, TimingWheel } from '@firebreak/core'
import type { Handling } from '../cache/handling.ts'
import type { AccessLog } from '../counting/access-log.ts'
import type { Crossing } from '../counting/fast-path.ts'
import type { ClusterHotKeys } from '../gate/cluster-hot-keys.ts'
import type { HotName } from '../gate/hot-name.ts'
import { allAtOnce, entriesPerStep, type Steps } from './turn-queue.ts'

/** What one Redis' part of the table needs. */
export interface ClusterTableOptions {
  readonly keys: Pick<ClusterHotKeys, 'names' | 'set' | 'delete'>
  readonly accesses: Pick<AccessLog, 'inside'>
  readonly clock: Clock
  readonly hubNow: () => number
  /** True if keys have other names outside this process. */
  readonly isRedacting: boolean
}

const claimHoldMs = 3000
const lapseTickMs = 50
/** The hub's clock may be set: no lapse is planned further ahead than this without checking again. */
const maxLapseMs = 60_000
/** Keys that one outside name may make hot; beyond that, the oldest are released. */
const maxInsideNames = 131_072

/**
 * Which names of one Redis are hot: by the strategy table, and for a while by this process' own claims. It applies
 * changes one by one, so that each costs only what it changes. An entry lapses at its `until`, for which it has a timer
 * in a wheel; one that was extended meanwhile gets another when it fires.
 */
export class ClusterTable {
  readonly #keys: ClusterTableOptions['keys']
  readonly #accesses: ClusterTableOptions['accesses']
  readonly #clock: Clock
  readonly #hubNow: () => number
  readonly #isRedacting: boolean
  readonly #lapses: TimingWheel<HotName>
  /** The names matched to an entry, if keys have other names outside this process. */
  readonly #insideNames = new Map<string, Set<string>>()
  #areLimitsLapsed = false

  constructor({ keys, accesses, clock, hubNow, isRedacting }: ClusterTableOptions) {
    this.#keys = keys
    this.#accesses = accesses
    this.#clock = clock
    this.#hubNow = hubNow
    this.#isRedacting = isRedacting
    this.#lapses = new TimingWheel({ clock, tickMs: lapseTickMs, onDue: (name) => this.#lapse(name) })
  }

  /** Replaces the table: names that are not in it are no longer hot. */
  reset(entries: Iterable<TableEntry>): void {
    allAtOnce(this.resetSteps(entries))
  }

  /** `reset` in steps. */
  *resetSteps(entries: Iterable<TableEntry>): Steps {
    const named = new Set<string>()
    let count = 0
    for (const entry of entries) {
      if (count++ > 0 && count % entriesPerStep === 0) yield
      this.set(entry)
      for (const name of this.#namesOf(entry.key)) named.add(name)
    }
    for (const name of this.#keys.names.values()) {
      if (count++ % entriesPerStep === 0) yield
      if (!name.handling.isClaim && !named.has(name.name)) this.#keys.delete(name)
    }
  }

  set(entry: TableEntry): void {
    for (const name of this.#accesses.inside(entry.key)) this.#take(name, entry)
  }

  remove(key: string): void {
    for (const name of this.#namesOf(key)) this.#drop(name)
    this.#insideNames.delete(key)
  }

  /** A key was seen whose outside name is in the table. */
  seen(name: string, entry: TableEntry): void {
    this.#take(name, entry)
  }

  /** Handles a key that this process alone made hot; true if it was not handled before. */
  claim(name: string, { strategy, ruleId }: Crossing): boolean {
    const known = this.#keys.names.get(name)
    if (known !== undefined && !known.handling.isClaim) return false
    this.#handle(name, { strategy, ruleId, until: this.#hubNow() + claimHoldMs, isClaim: true })
    return known === undefined
  }

  /**
   * After a long time without a hub, limits end, because nobody could lift them. `entries` is the table, for when they
   * apply again.
   */
  setLimitsLapsed(areLapsed: boolean, entries: () => Iterable<TableEntry>): void {
    if (this.#areLimitsLapsed === areLapsed) return
    this.#areLimitsLapsed = areLapsed
    for (const entry of entries()) if (entry.strategy.strategy === 'RateLimit') this.set(entry)
  }

  /** Releases what has lapsed. */
  tick(): void {
    this.#lapses.advance()
  }

  #namesOf(key: string): Iterable<string> {
    return this.#isRedacting ? (this.#insideNames.get(key) ?? []) : [key]
  }

  #take(name: string, { key, strategy, ruleId, until }: TableEntry): void {
    if (this.#isRedacting) this.#noteInside(key, name)
    const isOver = until <= this.#hubNow() || (this.#areLimitsLapsed && strategy.strategy === 'RateLimit')
    if (isOver) this.#drop(name)
    else this.#handle(name, { strategy, ruleId, until, isClaim: false })
  }

  #noteInside(key: string, name: string): void {
    const names = this.#insideNames.get(key)
    if (names === undefined) {
      this.#insideNames.set(key, new Set([name]))
      return
    }
    names.add(name)
    if (names.size <= maxInsideNames) return
    const [first] = names
    names.delete(first!)
    this.#drop(first!)
  }

  #drop(name: string): void {
    const known = this.#keys.names.get(name)
    // This process' own claims end by themselves.
    if (known !== undefined && !known.handling.isClaim) this.#keys.delete(known)
  }

  #handle(name: string, handling: Handling): void {
    this.#plan(this.#keys.set(name, handling))
  }

  #plan(name: HotName): void {
    const leftMs = Math.min(maxLapseMs, Math.max(0, name.handling.until - this.#hubNow()))
    const at = this.#clock.now() + leftMs
    // The existing timer checks again when it fires.
    if (name.lapseAt <= at) return
    if (this.#lapses.set(leftMs, name)) name.lapseAt = at
  }

  #lapse(name: HotName): void {
    if (this.#keys.names.get(name.name) !== name) return
    // From an earlier timer: a shorter time was planned since, and has already been handled.
    if (this.#clock.now() < name.lapseAt) return
    name.lapseAt = Number.POSITIVE_INFINITY
    if (name.handling.until <= this.#hubNow()) this.#keys.delete(name)
    else this.#plan(name)
  }
}
