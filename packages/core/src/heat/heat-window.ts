import type { Dict } from '../dict/dict.ts'
import { HeatRings } from './heat-rings.ts'
import type { WindowRules } from './window-rules.ts'

/** What a heat window needs, and how much it may hold. */
export interface HeatWindowOptions {
  readonly rules: WindowRules
  /** The time that the window begins at, in milliseconds; `moveTo` goes on from there. */
  readonly startMs: number
  /** Keys at one time. @default 20000000 */
  readonly maxKeys?: number
  /** Memory of entries and keys. @default 2 GiB */
  readonly maxBytes?: number
  /** Makes the hash unpredictable to whoever chooses the keys. @default 0 */
  readonly hashSeed?: number
  /** A marked key is forgotten; its index may be given to another. */
  readonly onForgetMarked?: (index: number) => void
}

const sweepPerNewKey = 2
const evictionSample = 12

/**
 * The accesses of every key of one Redis cluster in its rule's window: rings on a progressive dict (`HeatRings`), and
 * the choice of what to forget. Time and rules are passed in.
 *
 * Forgetting. `sweep` walks the entries in steps and deletes those whose window has passed; each new key takes two such
 * steps itself. At the bound each new key also drops the coldest of a dozen entries, so that cold keys push out cold
 * keys and a flood of them leaves the warm ones. Whoever keeps more about a key marks it, and is told when it goes.
 */
export class HeatWindow {
  /** More than it has may be asked for, or fewer: keys that are too many make room as new ones come. */
  maxKeys: number
  readonly dict: Dict
  /** Of the last `add`: whether it was the first of its key, and the key's heat after it. */
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

  /** Keys at this time. */
  get size(): number {
    return this.dict.size
  }

  /** Rows of new keys that found no room. */
  get refusedCount(): number {
    return this.#refusedCount
  }

  get nowMs(): number {
    return this.#nowMs
  }

  /** Moves the time on; a time before the last one is taken for that one. */
  moveTo(nowMs: number): void {
    if (nowMs <= this.#nowMs) return
    this.#nowMs = nowMs
    this.#rings.moveTo(nowMs - this.#startMs)
  }

  /** Adds one row of a report; gives the key's index, or -1 where it was refused. `hash` is what the dict gives for it. */
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

  /** A key's heat in its window now. */
  heatOf(index: number): number {
    return this.#rings.heatOf(index)
  }

  /** A key's slices, newest first, and after them how many milliseconds ago the newest began. */
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

  /** Marks a key as one whose end is to be told. */
  setMark(index: number, isMarked: boolean): void {
    this.#rings.setMark(index, isMarked)
  }

  /** Takes new rules; entries are matched again as they are touched or swept. */
  setRules(rules: WindowRules): void {
    while (!this.#rings.canChangeRules) this.#sweepStep(65_536)
    this.#rings.setRules(rules)
  }

  /** Looks at up to `maxEntries` entries and forgets the idle ones; true while the walk is not at its end. */
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

  /** Fits a new entry out; where the dict refused it (-1), makes room first. */
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

  /** Drops the coldest of a few entries; false where there is no other. */
  #evict(spared: number): boolean {
    let coldest = -1
    let least = Number.POSITIVE_INFINITY
    for (let left = evictionSample; left > 0 && least > 0; left--) {
      // Anywhere, not under the sweep's hand: neighbours came together and are often alike, hot ones too.
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
