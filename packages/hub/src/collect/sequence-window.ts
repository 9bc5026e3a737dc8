/** How many reports back one may come again. */
const size = 1024

/**
 * Recognises a report that comes twice (at-least-once transports, a sensor that sends again after a broken connection).
 *
 * The same sequence number with the same `collectTs` is the same report; with another time it is a process that began to
 * count from the start.
 */
export class SequenceWindow {
  readonly #seen = new Map<number, number>()

  /** True the first time. */
  isNew(sequence: number, collectTs: number): boolean {
    if (this.#seen.get(sequence) === collectTs) return false
    // Set again, so that the Map's order is the order of arrival and its first key the oldest.
    this.#seen.delete(sequence)
    this.#seen.set(sequence, collectTs)
    if (this.#seen.size > size) this.#seen.delete(this.#seen.keys().next().value!)
    return true
  }
}
