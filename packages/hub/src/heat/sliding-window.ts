/**
 * A count over the last `windowMs`, in slices.
 *
 * The ring holds `slices` + 1 slices; the newest is being filled, the oldest is on its way out. Only the part of the
 * oldest that is still inside the window counts (as if its accesses were spread evenly), so the sum covers exactly
 * `windowMs` at every moment; without it, the sum would cover 90 to 100 % of that, and a key just above its threshold
 * would cross it a slice late or never. Rotation is lazy: a window that nobody touches costs nothing.
 *
 *     ticks   …  h−10   h−9   …   h−1    h
 *               [oldest][         full   ][newest, partly filled]
 */
export class SlidingWindow {
  readonly #sliceMs: number
  /** A plain array: for eleven numbers a typed one would take three times the memory. */
  readonly #slices: number[]
  #head = 0
  #total = 0

  constructor(windowMs: number, slices = 10) {
    this.#sliceMs = windowMs / slices
    this.#slices = new Array<number>(slices + 1).fill(0)
  }

  /** Adds what happened at a time; anything older than the window is ignored. */
  add(at: number, count: number): void {
    const tick = Math.floor(at / this.#sliceMs)
    if (tick > this.#head) this.#rotate(tick)
    if (tick <= this.#head - this.#slices.length) return
    const place = tick % this.#slices.length
    this.#slices[place] = this.#slices[place]! + count
    this.#total += count
  }

  sum(now: number): number {
    const tick = Math.floor(now / this.#sliceMs)
    if (tick > this.#head) this.#rotate(tick)
    if (this.#total === 0) return 0
    const oldest = this.#slices[(this.#head + 1) % this.#slices.length]!
    const passed = Math.min(1, Math.max(0, now / this.#sliceMs - this.#head))
    return this.#total - oldest * passed
  }

  /**
   * The rate per second over some slices, counted from the newest (0), which is still filling, up to but not including
   * `end`.
   */
  ratePerSecond(now: number, start: number, end: number): number {
    const { headAgeMs, counts } = this.slices(now)
    const sum = counts.slice(start, end).reduce((total, count) => total + count, 0)
    const spanMs = start === 0 ? headAgeMs + (end - 1) * this.#sliceMs : (end - start) * this.#sliceMs
    return (sum * 1000) / spanMs
  }

  get sliceMs(): number {
    return this.#sliceMs
  }

  /** The slices, newest first, and how long ago the newest began. */
  slices(now: number): { readonly headAgeMs: number; readonly counts: number[] } {
    const tick = Math.floor(now / this.#sliceMs)
    if (tick > this.#head) this.#rotate(tick)
    const size = this.#slices.length
    const counts = this.#slices.map((_, age) => this.#slices[(this.#head - age + size) % size]!)
    return { headAgeMs: now - this.#head * this.#sliceMs, counts }
  }

  #rotate(tick: number): void {
    const size = this.#slices.length
    if (tick - this.#head >= size) {
      this.#slices.fill(0)
      this.#total = 0
    } else {
      for (let gone = this.#head + 1; gone <= tick; gone++) {
        this.#total -= this.#slices[gone % size]!
        this.#slices[gone % size] = 0
      }
    }
    this.#head = tick
  }
}
