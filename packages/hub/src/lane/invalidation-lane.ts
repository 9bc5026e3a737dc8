import { randomInt } from 'node:crypto'
import { encodeInvalidation, type Invalidation } from '@firebreak/core'

/** Sends bytes to every sensor that is connected. */
export type Broadcast = (bytes: Uint8Array) => void

/**
 * The hub's lane of invalidations: one sequence for all sensors. Every sensor gets every message, whatever clusters it
 * uses: with a sequence per cluster or key a lost message could not be told from one that was never meant.
 *
 * It begins anywhere. A hub that was started again under its old name has forgotten what it sent: where both had begun at
 * 0, its head could happen to be the one that a sensor heard last, and what changed in between would not show.
 */
export class InvalidationLane {
  #head = randomInt(2 ** 47)
  readonly #broadcast: Broadcast

  constructor(broadcast: Broadcast) {
    this.#broadcast = broadcast
  }

  /** The sequence of the newest message; in every heartbeat. */
  get head(): number {
    return this.#head
  }

  /** Something may have been missed: the next message, or heartbeat, shows every sensor a gap, and it flushes. */
  skip(): void {
    this.#head++
  }

  publish(invalidation: Omit<Invalidation, 'sequence'>): number {
    this.#head++
    this.#broadcast(encodeInvalidation({ ...invalidation, sequence: this.#head }))
    return this.#head
  }
}
