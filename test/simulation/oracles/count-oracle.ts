import { BrokenLaw } from './laws.ts'

/**
 * Accesses that each process made, and those that hubs counted of it. Each by itself: over all of them together, a report
 * that is counted twice would hide behind another that was lost.
 */
export class CountOracle {
  readonly #made = new Map<string, number>()
  readonly #counted = new Map<string, number>()

  made(who: string, accesses = 1): void {
    this.#made.set(who, (this.#made.get(who) ?? 0) + accesses)
  }

  counted(who: string, accesses: number): void {
    this.#counted.set(who, (this.#counted.get(who) ?? 0) + accesses)
  }

  /** Accesses of one process that no hub has counted, or not yet. */
  missing(who: string): number {
    return (this.#made.get(who) ?? 0) - (this.#counted.get(who) ?? 0)
  }

  /** No process' accesses are counted twice. */
  checkOnce(): void {
    for (const [who, counted] of this.#counted) {
      if (this.missing(who) >= 0) continue
      throw new BrokenLaw('once', `hubs counted ${counted} accesses of ${who}, which made ${this.#made.get(who) ?? 0}`)
    }
  }
}
