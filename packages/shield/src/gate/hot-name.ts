import { keyBytes } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { Handling } from '../cache/handling.ts'
import type { HotKey } from '../cache/hot-key.ts'
import type { KeySpace } from './key-space.ts'

/**
 * A name that is hot, in any key space. The key in a space is created when it is first requested there: a table of
 * 100,000 names costs nothing in a space where nobody reads them.
 */
export class HotName {
  readonly name: string
  handling: Handling
  /** When to check next whether it has lapsed. */
  lapseAt: number = Number.POSITIVE_INFINITY
  readonly #make: (name: HotName, space: KeySpace) => HotKey
  /** Its bytes, once it has been looked up by them. */
  keptBytes: Uint8Array | undefined
  // Nearly always there is one space.
  #key: HotKey | undefined
  #others: Map<KeySpace, HotKey> | undefined

  constructor(name: string, handling: Handling, make: (name: HotName, space: KeySpace) => HotKey) {
    this.name = name
    this.handling = handling
    this.#make = make
  }

  get bytes(): Uint8Array {
    this.keptBytes ??= keyBytes(this.name)
    return this.keptBytes
  }

  get slot(): number {
    return keySlotOfBytes(this.keptBytes ?? keyBytes(this.name))
  }

  /** True if the shield answers its reads, so that watchers must be awake. */
  get isServed(): boolean {
    const { strategy } = this.handling
    return strategy.strategy === 'LocalCache' || (strategy.strategy === 'RateLimit' && strategy.onLimit === 'stale')
  }

  /** The key in a space. */
  in(space: KeySpace): HotKey {
    const key = this.#key
    if (key !== undefined && key.space === space) return key
    return this.#others?.get(space) ?? this.#add(space)
  }

  /** Like `in`; undefined if it was never requested there. */
  peek(space: KeySpace): HotKey | undefined {
    return this.#key?.space === space ? this.#key : this.#others?.get(space)
  }

  /** The keys in all spaces in which it was requested. */
  *keys(): Generator<HotKey> {
    if (this.#key !== undefined) yield this.#key
    if (this.#others !== undefined) yield* this.#others.values()
  }

  /** The space ends. */
  leave(space: KeySpace): void {
    if (this.#key?.space === space) this.#key = undefined
    else this.#others?.delete(space)
  }

  #add(space: KeySpace): HotKey {
    const key = this.#make(this, space)
    if (this.#key === undefined) this.#key = key
    else {
      this.#others ??= new Map()
      this.#others.set(space, key)
    }
    return key
  }
}
