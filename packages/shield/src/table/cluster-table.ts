import { type Clock, type TableEntry, TimingWheel } from '@firebreak/core'
import type { Handling } from '../cache/handling.ts'
import type { AccessLog } from '../counting/access-log.ts'
import type { Crossing } from '../counting/fast-path.ts'
import type { HotKeys } from '../gate/hot-keys.ts'
import type { HotName } from '../gate/hot-name.ts'

/** What one Redis' part of the table works with. */
export interface ClusterTableOptions {
  readonly keys: Pick<HotKeys, 'names' | 'set' | 'delete'>
  readonly accesses: Pick<AccessLog, 'inside'>
  readonly clock: Clock
  readonly hubNow: () => number
  /** True where keys have other names outside this process. */
  readonly isRedacting: boolean
}

const claimHoldMs = 3000
const lapseTickMs = 50
/** The hub's clock may be set: no lapse is planned further ahead than this without looking again. */
const maxLapseMs = 60_000
/** Keys that one outside name makes hot; of more, those that were seen first are let go. */
const maxInsideNames = 131_072

/**
 * Which names of one Redis are hot: by the strategy table, and for a while by what this process claims itself. It takes the
 * table's changes one by one, so that each costs what it changes. An entry lapses at its `until`, and for that it has a
 * timer in a wheel; one that was extended meanwhile gets another when it fires.
 */
export class ClusterTable {
  readonly #keys: ClusterTableOptions['keys']
  readonly #accesses: ClusterTableOptions['accesses']
  readonly #clock: Clock
  readonly #hubNow: () => number
  readonly #isRedacting: boolean
  readonly #lapses: TimingWheel<HotName>
  /** The names that were taken for an entry, where keys have other names outside this process. */
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

  /** Takes a table whole: what it does not name is no longer hot. */
  reset(entries: Iterable<TableEntry>): void {
    const named = new Set<string>()
    for (const entry of entries) {
      this.set(entry)
      for (const name of this.#namesOf(entry.key)) named.add(name)
    }
    for (const name of this.#keys.names.values()) {
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

  /** A key was seen whose outside name the table has. */
  seen(name: string, entry: TableEntry): void {
    this.#take(name, entry)
  }

  /** Handles a key that this process alone made hot; true where it was not handled before. */
  claim(name: string, { strategy, ruleId }: Crossing): boolean {
    const known = this.#keys.names.get(name)
    if (known !== undefined && !known.handling.isClaim) return false
    this.#handle(name, { strategy, ruleId, until: this.#hubNow() + claimHoldMs, isClaim: true })
    return known === undefined
  }

  /** Without a hub for long, limits end: nobody could lift them. `entries` is the table, for when they hold again. */
  setLimitsLapsed(areLapsed: boolean, entries: () => Iterable<TableEntry>): void {
    if (this.#areLimitsLapsed === areLapsed) return
    this.#areLimitsLapsed = areLapsed
    for (const entry of entries()) if (entry.strategy.strategy === 'RateLimit') this.set(entry)
  }

  /** Lets go what has lapsed. */
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
    // What this process claims itself ends by itself.
    if (known !== undefined && !known.handling.isClaim) this.#keys.delete(known)
  }

  #handle(name: string, handling: Handling): void {
    this.#plan(this.#keys.set(name, handling))
  }

  #plan(name: HotName): void {
    const leftMs = Math.min(maxLapseMs, Math.max(0, name.handling.until - this.#hubNow()))
    const at = this.#clock.now() + leftMs
    // The timer that is set looks again when it fires.
    if (name.lapseAt <= at) return
    if (this.#lapses.set(leftMs, name)) name.lapseAt = at
  }

  #lapse(name: HotName): void {
    if (this.#keys.names.get(name.name) !== name) return
    // Of an earlier timer: a shorter time was planned since, and that has come by.
    if (this.#clock.now() < name.lapseAt) return
    name.lapseAt = Number.POSITIVE_INFINITY
    if (name.handling.until <= this.#hubNow()) this.#keys.delete(name)
    else this.#plan(name)
  }
}
