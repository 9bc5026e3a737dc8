import type { TrafficPoint } from '@firebreak/core'

/** Accesses in a span of time, by who answered. */
export type TrafficAmounts = Omit<TrafficPoint, 'at'>

const seconds = 130
const shownSeconds = 120
const fields = ['redis', 'local', 'copies', 'limited', 'writes'] as const
/** The longest time that a status covers; a sensor that was disconnected for longer reports everything at once. */
const maxSpanMs = 5000

/**
 * Who answered the fleet's accesses, second by second. A status covers the last second or so and is spread over it, so
 * that a few sensors do not produce a jagged chart.
 */
export class TrafficMeter {
  readonly #points = new Map<number, Record<(typeof fields)[number], number>>()

  add(from: number, to: number, amounts: TrafficAmounts): void {
    const start = Math.max(from, to - maxSpanMs)
    const spanMs = to - start
    for (let second = Math.floor(start / 1000); second * 1000 <= to; second++) {
      const insideMs = Math.min(to, (second + 1) * 1000) - Math.max(start, second * 1000)
      const part = spanMs > 0 ? insideMs / spanMs : 1
      if (part <= 0) continue
      const point = this.#point(second)
      for (const field of fields) point[field] += amounts[field] * part
    }
  }

  /** The last two minutes, oldest first. The newest point is the last second that all statuses cover. */
  points(now: number): TrafficPoint[] {
    const last = Math.floor(now / 1000) - 2
    return Array.from({ length: shownSeconds }, (_, index) => this.#view(last - shownSeconds + 1 + index))
  }

  /** The newest of `points`. */
  latest(now: number): TrafficPoint {
    return this.#view(Math.floor(now / 1000) - 2)
  }

  /** One second of the last two minutes. */
  second(second: number): TrafficPoint {
    return this.#view(second)
  }

  forget(now: number): void {
    const oldest = Math.floor(now / 1000) - seconds
    for (const second of this.#points.keys()) if (second < oldest) this.#points.delete(second)
  }

  #point(second: number): Record<(typeof fields)[number], number> {
    let point = this.#points.get(second)
    if (point === undefined) {
      point = { redis: 0, local: 0, copies: 0, limited: 0, writes: 0 }
      this.#points.set(second, point)
    }
    return point
  }

  #view(second: number): TrafficPoint {
    const point = this.#points.get(second)
    const rounded = (field: (typeof fields)[number]) => Math.round(point?.[field] ?? 0)
    return {
      at: second * 1000,
      redis: rounded('redis'),
      local: rounded('local'),
      copies: rounded('copies'),
      limited: rounded('limited'),
      writes: rounded('writes'),
    }
  }
}
