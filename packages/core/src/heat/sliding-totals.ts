import { InvalidOptionError } from '../errors/firebreak-error.ts'

interface Total {
  slice: number
  sum: number
  readonly ring: Float64Array
}

/** How totals by name are kept. */
export interface SlidingTotalsOptions {
  readonly windowMs: number
  /** @default 10 */
  readonly slices?: number
  /** Names at one time; those that are silent longest make room, and where none is, the rest is summed under `''`. @default 4096 */
  readonly maxNames?: number
}

/** Accesses by name (of a service, of a cluster) in a sliding window, for shares and for the console. */
export class SlidingTotals {
  readonly windowMs: number
  readonly #slices: number
  readonly #maxNames: number
  readonly #totals = new Map<string, Total>()

  constructor(options: SlidingTotalsOptions) {
    const { windowMs, slices = 10, maxNames = 4096 } = options
    if (!(windowMs > 0)) throw new InvalidOptionError('windowMs', windowMs, 'above 0')
    this.windowMs = windowMs
    this.#slices = slices
    this.#maxNames = maxNames
  }

  add(name: string, count: number, nowMs: number): void {
    const slice = this.#sliceAt(nowMs)
    const total = this.#totals.get(name) ?? this.#begin(name, slice)
    this.#moveTo(total, slice)
    total.ring[slice % this.#slices]! += count
    total.sum += count
  }

  /** Accesses of a name in the window that ends now. */
  of(name: string, nowMs: number): number {
    const total = this.#totals.get(name)
    if (total === undefined) return 0
    this.#moveTo(total, this.#sliceAt(nowMs))
    return total.sum
  }

  /** Every name with its accesses, silent ones left out. */
  *all(nowMs: number): Generator<[name: string, count: number]> {
    for (const name of this.#totals.keys()) {
      const count = this.of(name, nowMs)
      if (count > 0) yield [name, count]
    }
  }

  #sliceAt(nowMs: number): number {
    return Math.floor((nowMs * this.#slices) / this.windowMs)
  }

  #begin(name: string, slice: number): Total {
    if (this.#totals.size >= this.#maxNames && !this.#dropSilent(slice)) {
      const rest = this.#totals.get('')
      if (rest !== undefined) return rest
      return this.#make('', slice)
    }
    return this.#make(name, slice)
  }

  #make(name: string, slice: number): Total {
    const total = { slice, sum: 0, ring: new Float64Array(this.#slices) }
    this.#totals.set(name, total)
    return total
  }

  #dropSilent(slice: number): boolean {
    let hasDropped = false
    for (const [name, total] of this.#totals) {
      if (slice - total.slice < this.#slices) continue
      this.#totals.delete(name)
      hasDropped = true
    }
    return hasDropped
  }

  #moveTo(total: Total, slice: number): void {
    const steps = Math.min(slice - total.slice, this.#slices)
    for (let step = 0; step < steps; step++) {
      const at = (slice - step) % this.#slices
      total.sum -= total.ring[at]!
      total.ring[at] = 0
    }
    if (steps > 0) total.slice = slice
  }
}
