import type { Algorithm } from './algorithm.ts'

const firstSlots = 64
/** How many keys a full table looks at to choose the one it drops. */
const evictionSample = 8

/**
 * Which slot of an algorithm holds a key's state, for at most `maxKeys` keys.
 *
 * A key whose state is as good as unused is forgotten: each new key moves a hand two keys on, so that a table never
 * holds more than twice the keys in use and no sweep ever stops the process. A full table drops, of the next eight keys
 * under the hand, the one that would be unused soonest; that key starts anew, and the drop is counted.
 */
export class KeyTable {
  readonly #algorithm: Algorithm
  readonly #maxKeys: number
  readonly #slots = new Map<string, number>()
  readonly #free: number[] = []
  #used = 0
  #room = 0
  /** A live iterator sees keys added behind it and skips deleted ones. */
  #hand: Iterator<[string, number]>
  evicted = 0

  constructor(algorithm: Algorithm, maxKeys: number) {
    this.#algorithm = algorithm
    this.#maxKeys = maxKeys
    this.#hand = this.#slots.entries()
  }

  get size(): number {
    return this.#slots.size
  }

  find(key: string): number | undefined {
    return this.#slots.get(key)
  }

  /** The slot of a key that has none yet. */
  add(key: string, nowMs: number): number {
    this.#sweep(nowMs)
    if (this.#slots.size >= this.#maxKeys) this.#evict()
    const slot = this.#free.pop() ?? this.#nextSlot()
    this.#slots.set(key, slot)
    return slot
  }

  remove(key: string): void {
    const slot = this.#slots.get(key)
    if (slot === undefined) return
    this.#algorithm.clear(slot)
    this.#slots.delete(key)
    this.#free.push(slot)
  }

  #nextSlot(): number {
    if (this.#used === this.#room) {
      this.#room = Math.min(this.#maxKeys, Math.max(firstSlots, this.#room * 2))
      this.#algorithm.grow(this.#room)
    }
    return this.#used++
  }

  #sweep(nowMs: number): void {
    for (let step = 0; step < 2; step++) {
      const entry = this.#next()
      if (entry !== undefined && this.#algorithm.unusedAtMs(entry[1]) <= nowMs) this.remove(entry[0])
    }
  }

  #evict(): void {
    let victim: string | undefined
    let soonest = Number.POSITIVE_INFINITY
    for (let step = 0; step < evictionSample; step++) {
      const entry = this.#next()
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

  /** The key under the hand, from the start again after the last; undefined where there is none. */
  #next(): [string, number] | undefined {
    let step = this.#hand.next()
    if (step.done) {
      this.#hand = this.#slots.entries()
      step = this.#hand.next()
    }
    return step.done ? undefined : step.value
  }
}
