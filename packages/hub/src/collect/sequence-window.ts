/** How many reports back a duplicate is recognised. */
const size = 1024

/**
 * Recognises duplicate reports (at-least-once transports, a sensor that resends after a lost connection).
 *
 * The same sequence number with the same `collectTs` is the same report; with another time it is a process that
 * restarted its count.
 */
export class SequenceWindow {
  readonly #seen = new Map<number, number>()

  /** True the first time. */
  isNew(sequence: number, collectTs: number): boolean {
    if (this.#seen.get(sequence) === collectTs) return false
    // Reinserted, so that the Map is in order of arrival and its first key the oldest.
    this.#seen.delete(sequence)
    this.#seen.set(sequence, collectTs)
    if (this.#seen.size > size) this.#seen.delete(this.#seen.keys().next().value!)
    return true
  }
}
