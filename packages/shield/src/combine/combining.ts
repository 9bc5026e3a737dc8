import type { HotKey } from '../cache/hot-key.ts'
import type { CombinePart, CombineWay } from './combine-part.ts'
import { CombineRights } from './combine-rights.ts'
import { CombinedCounter } from './combined-counter.ts'

/** Fields of one hash that are remembered while idle. */
const maxIdleFields = 1024

/** The counters whose increments are combined on one connection to Redis. */
export class Combining {
  readonly #way: CombineWay
  readonly #now: () => number
  readonly #keys = new WeakMap<HotKey, KeyCounters>()

  constructor(way: CombineWay, now: () => number) {
    this.#way = way
    this.#now = now
  }

  /** Adds an increment of a key, or of a field of it. */
  join(hot: HotKey, field: Uint8Array | undefined, part: CombinePart): void {
    let counters = this.#keys.get(hot)
    if (counters === undefined) {
      counters = new KeyCounters(hot, this.#way, this.#now)
      this.#keys.set(hot, counters)
    }
    counters.of(field).join(part)
  }
}

/** The counters of one key: the key itself, or the fields of a hash. */
class KeyCounters {
  readonly hot: HotKey
  readonly way: CombineWay
  readonly now: () => number
  readonly rights = new CombineRights()
  readonly #whole: CombinedCounter
  readonly #fields = new Map<string, CombinedCounter>()

  constructor(hot: HotKey, way: CombineWay, now: () => number) {
    this.hot = hot
    this.way = way
    this.now = now
    this.#whole = new CombinedCounter(this, undefined)
  }

  of(field: Uint8Array | undefined): CombinedCounter {
    if (field === undefined) return this.#whole
    const id = Buffer.from(field.buffer, field.byteOffset, field.length).toString('latin1')
    const known = this.#fields.get(id)
    if (known !== undefined) return known
    if (this.#fields.size >= maxIdleFields) this.#forgetIdle()
    const counter = new CombinedCounter(this, Buffer.from(field))
    this.#fields.set(id, counter)
    return counter
  }

  #forgetIdle(): void {
    for (const [id, counter] of this.#fields) if (counter.isIdle) this.#fields.delete(id)
  }
}
