import { slotCount } from '../slots/key-slot.ts'

/**
 * Accesses per hash slot in a sliding window, at all times: one ring for all slots, slice by slice, so that a new slice
 * clears one row of 64 kB and nothing is swept per key. Nodes are sums over the slots they own.
 */
export class SlotHeat {
  readonly windowMs: number
  readonly #sliceMs: number
  readonly #slices: number
  readonly #ring: Float64Array
  readonly #totals = new Float64Array(slotCount)
  #slice = 0
  #row = 0
  #total = 0

  constructor(windowMs: number, slices: number) {
    this.windowMs = windowMs
    this.#sliceMs = windowMs / slices
    this.#slices = slices
    this.#ring = new Float64Array(slotCount * slices)
  }

  /** All accesses in the window. */
  get total(): number {
    return this.#total
  }

  add(slot: number, count: number): void {
    this.#ring[this.#row + slot]! += count
    this.#totals[slot]! += count
    this.#total += count
  }

  /** Accesses of a slot in the window. */
  of(slot: number): number {
    return this.#totals[slot]!
  }

  /** Accesses of every slot in the window; a view, not to be written. */
  all(): Float64Array {
    return this.#totals
  }

  /** Accesses per node, where `owners[slot]` is the node's number and -1 nobody's. */
  byNode(owners: Int16Array | Int32Array, nodeCount: number): Float64Array {
    const sums = new Float64Array(nodeCount)
    for (let slot = 0; slot < slotCount; slot++) {
      const owner = owners[slot]!
      if (owner >= 0 && owner < nodeCount) sums[owner]! += this.#totals[slot]!
    }
    return sums
  }

  /** Moves the window to the time since its origin. */
  moveTo(elapsedMs: number): void {
    const slice = Math.floor(elapsedMs / this.#sliceMs)
    if (slice <= this.#slice) return
    const steps = Math.min(slice - this.#slice, this.#slices)
    this.#slice = slice
    for (let step = steps - 1; step >= 0; step--) this.#clear(((slice - step) % this.#slices) * slotCount)
    this.#row = (slice % this.#slices) * slotCount
  }

  #clear(row: number): void {
    // Counts are whole numbers far below 2^53, so taking them off again is exact.
    for (let slot = 0; slot < slotCount; slot++) {
      const gone = this.#ring[row + slot]!
      if (gone === 0) continue
      this.#totals[slot]! -= gone
      this.#total -= gone
    }
    this.#ring.fill(0, row, row + slotCount)
  }
}
