import type { CounterName } from './counter-command.ts'

/**
 * Whatever Redis recently allowed a user is assumed to be still allowed for this long, the same time as for serving
 * replies.
 */
const provenMs = 5000

/** The commands that one user was recently allowed to run on one key. */
export class CombineRights {
  readonly #provenUntil = new Map<CounterName, number>()
  #epoch = 0

  isProven(name: CounterName, now: number, epoch: number): boolean {
    return epoch === this.#epoch && now < (this.#provenUntil.get(name) ?? Number.NEGATIVE_INFINITY)
  }

  /** Redis has carried it out. */
  prove(name: CounterName, now: number, epoch: number): void {
    if (epoch !== this.#epoch) this.#provenUntil.clear()
    this.#epoch = epoch
    this.#provenUntil.set(name, now + provenMs)
  }

  forget(name: CounterName): void {
    this.#provenUntil.delete(name)
  }
}
