import type { Clock } from '@firebreak/core'
import type { Answer } from '../answer.ts'

/** How a process leases units in advance. */
export interface LeaseOptions {
  /** Units taken from Redis at a time. */
  readonly units: number
  /** Units not used by then are given up. @default 1000 */
  readonly maxMs?: number
}

interface Lease {
  units: number
  readonly endsAt: number
  readonly answer: Answer
}

/**
 * Units charged on Redis in advance and given out here without a call.
 *
 * The bound: every unit given out was charged, so Redis never admits more than the limit; but a unit may be used up to
 * `maxMs` after it was charged (never past the time at which the limit is unused again), so one window can see at most
 * limit + units × processes, and units of a process that stops asking are lost until they are replaced by time.
 */
export class Leases {
  readonly units: number
  readonly #maxMs: number
  readonly #leases = new Map<string, Lease>()
  readonly #fetching = new Map<string, Promise<Answer>>()
  readonly #maxKeys: number
  readonly #clock: Clock

  constructor(options: LeaseOptions, maxKeys: number, clock: Clock) {
    this.#clock = clock
    this.units = options.units
    this.#maxMs = options.maxMs ?? 1000
    this.#maxKeys = maxKeys
  }

  /** Uses leased units; undefined if there are not enough. */
  use(key: string, cost: number): Answer | undefined {
    const lease = this.#leases.get(key)
    if (lease === undefined) return undefined
    if (lease.endsAt <= this.#clock.now()) {
      this.#leases.delete(key)
      return undefined
    }
    if (lease.units < cost) return undefined
    lease.units -= cost
    return { ...lease.answer, remaining: lease.answer.remaining + lease.units, source: 'lease' }
  }

  /** Fetches a lease with `take`, which requests `units` from Redis; one fetch per key at a time. */
  fetch(key: string, take: () => Promise<Answer>): Promise<Answer> {
    let fetching = this.#fetching.get(key)
    if (fetching === undefined) {
      const sentAt = this.#clock.now()
      fetching = take().then((answer) => {
        if (answer.allowed && answer.source === 'redis') this.#add(key, sentAt, answer)
        return answer
      })
      fetching = fetching.finally(() => this.#fetching.delete(key))
      this.#fetching.set(key, fetching)
    }
    return fetching
  }

  #add(key: string, sentAt: number, answer: Answer): void {
    if (this.#leases.size >= this.#maxKeys) {
      for (const [other, { endsAt }] of this.#leases) {
        this.#leases.delete(other)
        if (endsAt > sentAt) break
      }
    }
    this.#leases.set(key, { units: this.units, endsAt: sentAt + Math.min(this.#maxMs, answer.resetMs), answer })
  }

  forget(key: string): void {
    this.#leases.delete(key)
  }
}
