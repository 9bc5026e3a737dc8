import type { Dict } from '../dict/dict.ts'
import { HeatRings } from './heat-rings.ts'
import type { WindowRules } from './window-rules.ts'

/** What a heat window needs, and its limits. */
export interface HeatWindowOptions {
  readonly rules: WindowRules
  /** When the window begins, in milliseconds; `moveTo` continues from there. */
  readonly startMs: number
  /** Maximum number of keys. @default 20000000 */
  readonly maxKeys?: number
  /** Maximum memory of entries and keys. @default 2 GiB */
  readonly maxBytes?: number
  /** Makes the hash unpredictable to whoever chooses the keys. @default 0 */
  readonly hashSeed?: number
  /** A marked key was dropped; its index may be reused for another. */
  readonly onForgetMarked?: (index: number) => void
}

const sweepPerNewKey = 2
const evictionSample = 12

/**
 * The accesses of every key of one Redis cluster within its rule's window: rings on a progressive dict (`HeatRings`),
 * and the choice of which keys to drop. Time and rules are passed in.
 *
 * Dropping keys. `sweep` walks the entries in steps and deletes those whose window has passed; each new key takes two
 * such steps itself. At the bound, each new key also drops the coldest of a dozen entries, so that cold keys push out
 * cold keys and a flood of them leaves the warm ones alone. An owner that keeps more data about a key marks it, and is
 * called when it is dropped.
 */
export class HeatWindow {
  /** May be set above or below the current number of keys: any excess is dropped as new keys arrive. */
  maxKeys: number
  readonly dict: Dict
  /** About the last `add`: whether it was the key's first, and the key's heat after it. */
  wasNew = false
  lastHeat = 0
  readonly #startMs: number
  readonly #onForgetMarked: ((index: number) => void) | undefined
  readonly #rings: HeatRings
  #nowMs: number
  #sweepAt = 0
  #victimSeed = 1
  #refusedCount = 0

  constructor(options: HeatWindowOptions) {
    const { rules, startMs, maxKeys = 20_000_000, maxBytes = 2 ** 31, hashSeed = 0 } = options
    this.maxKeys = maxKeys
    this.#startMs = startMs
    this.#nowMs = startMs
    this.#onForgetMarked = options.onForgetMarked
    this.#rings = new HeatRings(rules, maxBytes, hashSeed)
    this.dict = this.#rings.dict
  }

  /** Current number of keys. */
  get size(): number {
    return this.dict.size
  }

  /** Rows of new keys that were refused for lack of room. */
  get refusedCount(): number {
    return this.#refusedCount
  }

  get nowMs(): number {
    return this.#nowMs
  }

  /** Advances the time; an earlier time counts as the last one given. */
  moveTo(nowMs: number): void {
    if (nowMs <= this.#nowMs) return
    this.#nowMs = nowMs
    this.#rings.moveTo(nowMs - this.#startMs)
  }

  /**
   * Adds one row of a report; returns the key's index, or -1 if it was refused. `hash` is the dict's hash of the key.
   */
  add(bytes: Uint8Array, start: number, end: number, count: number, hash: number): number {
    const { dict } = this
    let index = dict.findOrInsert(bytes, start, end, hash)
    this.wasNew = index < 0 || dict.wasInserted
    if (this.wasNew) {
      index = this.#begin(index, bytes, start, end, hash)
      if (index < 0) return -1
    }
    this.lastHeat = this.#rings.add(index, count)
    return index
  }

  /** A key's current heat in its window. */
  heatOf(index: number): number {
    return this.#rings.heatOf(index)
  }

  /** A key's slices, newest first, followed by how many milliseconds ago the newest one began. */
  slicesOf(index: number, into: Float64Array): void {
    this.#rings.slicesOf(index, into)
  }

  /** The index of a key, or -1. */
  find(key: Uint8Array): number {
    return this.dict.find(key, 0, key.length, this.dict.hash(key, 0, key.length))
  }

  /** The index of a key's rule. */
  ruleOf(index: number): number {
    return this.#rings.ruleOf(index)
  }

  slotOf(index: number): number {
    return this.#rings.slotOf(index)
  }

  isMarked(index: number): boolean {
    return this.#rings.isMarked(index)
  }

  /** Marks a key so that dropping it is reported. */
  setMark(index: number, isMarked: boolean): void {
    this.#rings.setMark(index, isMarked)
  }

  /** Sets new rules; entries are matched again as they are touched or swept. */
  setRules(rules: WindowRules): void {
    while (!this.#rings.canChangeRules) this.#sweepStep(65_536)
    this.#rings.setRules(rules)
  }

  /** Visits up to `maxEntries` entries and drops the idle ones; true until the walk reaches its end. */
  sweep(maxEntries: number): boolean {
    this.dict.rehash(maxEntries)
    return this.#sweepStep(maxEntries)
  }

  #sweepStep(maxEntries: number, spared = -1): boolean {
    for (let left = maxEntries; left > 0; left--) {
      const index = this.dict.next(this.#sweepAt)
      if (index < 0) {
        this.#sweepAt = 0
        this.#rings.passDone()
        return false
      }
      this.#sweepAt = index + 1
      if (index !== spared && this.heatOf(index) <= 0) this.#forget(index)
    }
    return true
  }

  #forget(index: number): void {
    if (this.isMarked(index)) this.#onForgetMarked?.(index)
    this.dict.deleteAt(index)
  }

  /** Initialises a new entry; if the dict refused it (-1), makes room first. */
  #begin(inserted: number, bytes: Uint8Array, start: number, end: number, hash: number): number {
    const { dict } = this
    let index = inserted
    if (index < 0 || dict.size > this.maxKeys || dict.isNearlyFull) {
      dict.packTightly()
      const hasRoom = this.#evict(index)
      if (index < 0) index = dict.findOrInsert(bytes, start, end, hash)
      else if (!hasRoom && dict.size > this.maxKeys) {
        dict.deleteAt(index)
        index = -1
      }
      if (index < 0) {
        this.#refusedCount++
        return -1
      }
    }
    this.#rings.begin(index, bytes, start, end)
    this.#sweepStep(sweepPerNewKey, index)
    return index
  }

  /** Drops the coldest of a few entries; false if there is no other. */
  #evict(spared: number): boolean {
    let coldest = -1
    let least = Number.POSITIVE_INFINITY
    for (let left = evictionSample; left > 0 && least > 0; left--) {
      // Picked at random, not next to the sweep's position: neighbours arrived together and are often alike, hot ones
      // too.
      this.#victimSeed = (Math.imul(this.#victimSeed, 1_664_525) + 1_013_904_223) >>> 0
      const index = this.dict.pick(this.#victimSeed)
      if (index === spared) continue
      const heat = this.heatOf(index)
      if (heat >= least) continue
      coldest = index
      least = heat
    }
    if (coldest >= 0) this.#forget(coldest)
    return coldest >= 0
  }
}
