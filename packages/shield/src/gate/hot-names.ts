import { keyGroup, type Strategy } from '@firebreak/core'
import type { Handling } from '../cache/handling.ts'
import type { HotKey } from '../cache/hot-key.ts'
import { HotName } from './hot-name.ts'
import { HotTable } from './hot-table.ts'
import type { KeySpace } from './key-space.ts'
import { NameFilter } from './name-filter.ts'

/** How one space looks up names. */
export interface NameLookup {
  readonly size: number
  get(name: string): HotName | undefined
  /** The name whose bytes stand from `start` to `end` and have this hash. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): HotName | undefined
}

/**
 * The names that are hot in one Redis, for all of its key spaces. Each change costs what it changes, however many names
 * there are.
 */
export class HotNames implements NameLookup {
  readonly #names = new Map<string, HotName>()
  // A small map is in the processor's caches anyway.
  #filter: NameFilter | undefined
  // A cold access looks twice, in the called method and on the send path, and the same key is often requested
  // repeatedly.
  #asked: string | undefined
  #answer: HotName | undefined
  readonly #hashOf: (bytes: Uint8Array) => number
  readonly #make: (name: HotName, space: KeySpace) => HotKey
  // A client looks names up as strings, and never pays for this.
  #byBytes: HotTable<HotName> | undefined
  readonly #strategies = new Map<string, number>()
  readonly #groups = new Map<string, number>()
  readonly #groupOf: (name: string) => string

  constructor(options: {
    readonly hashOf: (bytes: Uint8Array) => number
    /** The name that a key has outside this process. */
    readonly outside: (name: string) => string
    readonly make: (name: HotName, space: KeySpace) => HotKey
  }) {
    this.#hashOf = options.hashOf
    this.#make = options.make
    this.#groupOf = (name) => keyGroup(options.outside(name))
  }

  get size(): number {
    return this.#names.size
  }

  /** How many there are of each strategy. */
  get strategies(): ReadonlyMap<string, number> {
    return this.#strategies
  }

  /** How many there are of each group of names. */
  get groups(): ReadonlyMap<string, number> {
    return this.#groups
  }

  get(name: string): HotName | undefined {
    if (name === this.#asked) return this.#answer
    this.#asked = name
    this.#answer = this.#filter?.mayHave(name) === false ? undefined : this.#names.get(name)
    return this.#answer
  }

  values(): Iterable<HotName> {
    return this.#names.values()
  }

  find(bytes: Uint8Array, start: number, end: number, hash: number): HotName | undefined {
    return (this.#byBytes ?? this.#makeByBytes()).find(bytes, start, end, hash)
  }

  add(name: string, handling: Handling): HotName {
    const made = new HotName(name, handling, this.#make)
    this.#names.set(name, made)
    this.#asked = undefined
    if (this.#filter !== undefined) this.#filter.add(name)
    else if (this.#names.size >= manyNames) this.#makeFilter()
    this.#byBytes?.add(made, this.#hashOf(made.bytes))
    this.#count(handling.strategy, 1)
    add(this.#groups, this.#groupOf(name), 1)
    return made
  }

  change(name: HotName, handling: Handling): void {
    this.#count(name.handling.strategy, -1)
    this.#count(handling.strategy, 1)
    name.handling = handling
  }

  remove(name: HotName): void {
    this.#names.delete(name.name)
    this.#asked = undefined
    this.#filter?.remove(name.name)
    this.#byBytes?.remove(name, this.#hashOf(name.bytes))
    this.#count(name.handling.strategy, -1)
    add(this.#groups, this.#groupOf(name.name), -1)
  }

  #count({ strategy }: Strategy, change: number): void {
    add(this.#strategies, strategy, change)
  }

  #makeFilter(): void {
    this.#filter = new NameFilter()
    for (const name of this.#names.keys()) this.#filter.add(name)
  }

  #makeByBytes(): HotTable<HotName> {
    const table = new HotTable<HotName>()
    for (const name of this.#names.values()) table.add(name, this.#hashOf(name.bytes))
    this.#byBytes = table
    return table
  }
}

/** From this many names on, cold names are filtered out before the map is asked. */
const manyNames = 2048

/** No name is hot. */
export const noNames: NameLookup = { size: 0, get: () => undefined, find: () => undefined }

function add(counts: Map<string, number>, name: string, change: number): void {
  const count = (counts.get(name) ?? 0) + change
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}
