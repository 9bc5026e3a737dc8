import type { Algorithm } from './algorithm.ts'
import { TieredMap } from './tiered-map.ts'

const firstSlots = 64
/** How many keys a full table considers when it drops one. */
const evictionSample = 8

/**
 * Maps keys to an algorithm's slots, for at most `maxKeys` keys.
 *
 * A key whose state is equivalent to unused is forgotten: each new key advances a hand by two keys, so that a table
 * never holds more than twice the keys in use and no sweep ever blocks the process. A full table drops, of the next
 * eight keys under the hand, the one that would be unused soonest; that key starts over, and the drop is counted. Keys
 * whose last call was denied are spared as long as there are others.
 */
export class KeyTable {
  readonly #algorithm: Algorithm
  readonly #maxKeys: number
  readonly #slots = new TieredMap<number>()
  /** For each slot, 1 if its key's last call was denied. */
  #isOver = new Uint8Array(0)
  readonly #free: number[] = []
  #used = 0
  #room = 0
  evicted = 0

  constructor(algorithm: Algorithm, maxKeys: number) {
    this.#algorithm = algorithm
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#slots.size
  }

  find(key: string): number | undefined {
    return this.#slots.get(key)
  }

  /** Assigns a slot to a key that has none yet. */
  add(key: string, nowMs: number): number {
    this.#sweep(nowMs)
    if (this.#slots.size >= this.#maxKeys) this.#evict()
    const slot = this.#free.pop() ?? this.#nextSlot()
    this.#slots.add(key, slot)
    return slot
  }

  /** Records whether a key was just denied. */
  mark(key: string, slot: number, isOver: boolean): void {
    const mark = isOver ? 1 : 0
    if (this.#isOver[slot] === mark) return
    this.#isOver[slot] = mark
    this.#slots.mark(key, isOver)
  }

  remove(key: string): void {
    const slot = this.#slots.get(key)
    if (slot === undefined) return
    this.#algorithm.clear(slot)
    this.#isOver[slot] = 0
    this.#slots.delete(key)
    this.#free.push(slot)
  }

  #nextSlot(): number {
    if (this.#used === this.#room) {
      this.#room = Math.min(this.#maxKeys, Math.max(firstSlots, this.#room * 2))
      this.#algorithm.grow(this.#room)
      const larger = new Uint8Array(this.#room)
      larger.set(this.#isOver)
      this.#isOver = larger
    }
    return this.#used++
  }

  #sweep(nowMs: number): void {
    this.#sweepOne(this.#slots.nextToDrop(), nowMs)
    this.#sweepOne(this.#slots.nextToDrop(), nowMs)
    this.#sweepOne(this.#slots.nextOver(), nowMs)
  }

  #sweepOne(entry: [string, number] | undefined, nowMs: number): void {
    if (entry !== undefined && this.#algorithm.unusedAtMs(entry[1]) <= nowMs) this.remove(entry[0])
  }

  #evict(): void {
    let victim: string | undefined
    let soonest = Number.POSITIVE_INFINITY
    for (let step = 0; step < evictionSample; step++) {
      const entry = this.#slots.nextToDrop()
      if (entry === undefined) continue
      const unusedAt = this.#algorithm.unusedAtMs(entry[1])
      if (unusedAt < soonest) {
        soonest = unusedAt
        victim = entry[0]
      }
    }
    if (victim === undefined) return
    this.remove(victim)
    this.evicted++
  }
}
