import { slotCount } from '../slots/key-slot.ts'

/**
 * Accesses per hash slot in a sliding window, at all times: one ring for all slots, slice by slice, so that a new slice
 * clears one row of 128 kB and nothing is swept per key. Sums are made when they are asked for; nodes are sums over the
 * slots they own.
 */
export class SlotHeat {
  readonly windowMs: number
  readonly #sliceMs: number
  readonly #slices: number
  readonly #ring: Float64Array
  #slice = 0
  #row = 0

  constructor(windowMs: number, slices: number) {
    this.windowMs = windowMs
    this.#sliceMs = windowMs / slices
    this.#slices = slices
    this.#ring = new Float64Array(slotCount * slices)
  }

  add(slot: number, count: number): void {
    this.#ring[this.#row + slot]! += count
  }

  /** All accesses in the window. */
  get total(): number {
    return this.#ring.reduce((sum, count) => sum + count, 0)
  }

  /** Accesses of a slot in the window. */
  of(slot: number): number {
    let sum = 0
    for (let at = slot; at < this.#ring.length; at += slotCount) sum += this.#ring[at]!
    return sum
  }

  /** Accesses of every slot in the window. */
  all(): Float64Array {
    const sums = new Float64Array(slotCount)
    for (let row = 0; row < this.#ring.length; row += slotCount) {
      for (let slot = 0; slot < slotCount; slot++) sums[slot]! += this.#ring[row + slot]!
    }
    return sums
  }

  /** Accesses per node, where `owners[slot]` is the node's number and -1 nobody's. */
  byNode(owners: Int16Array | Int32Array, nodeCount: number): Float64Array {
    const sums = new Float64Array(nodeCount)
    for (const [slot, count] of this.all().entries()) {
      const owner = owners[slot]!
      if (owner >= 0 && owner < nodeCount) sums[owner]! += count
    }
    return sums
  }

  /** Moves the window to the time since its origin. */
  moveTo(elapsedMs: number): void {
    const slice = Math.floor(elapsedMs / this.#sliceMs)
    if (slice <= this.#slice) return
    const steps = Math.min(slice - this.#slice, this.#slices)
    this.#slice = slice
    for (let step = 0; step < steps; step++) {
      const row = ((slice - step) % this.#slices) * slotCount
      this.#ring.fill(0, row, row + slotCount)
    }
    this.#row = (slice % this.#slices) * slotCount
  }
}
