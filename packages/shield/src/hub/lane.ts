/**
 * The invalidation lane as this process hears it. One sequence runs through the whole lane and its head is in every
 * heartbeat, so that a lost message shows: any gap means that something unknown may have changed, and all that only the lane would have
 * told of is flushed.
 */
export class Lane {
  #hubId = ''
  #sequence: number | undefined
  #isReconnected = false

  /** A hub answered: another one has another lane. */
  connected(hubId: string): void {
    if (hubId !== this.#hubId) this.#sequence = undefined
    this.#isReconnected = this.#hubId !== ''
    this.#hubId = hubId
  }

  disconnected(): void {
    this.#isReconnected = true
  }

  /** A message came; true where one before it is missing. */
  received(sequence: number): boolean {
    const hasGap = this.#sequence === undefined ? this.#isReconnected : sequence !== this.#sequence + 1
    this.#sequence = sequence
    return hasGap
  }

  /** A heartbeat named the head; true where messages up to it are missing. */
  heard(head: number): boolean {
    const hasGap = this.#sequence === undefined ? this.#isReconnected : head !== this.#sequence
    this.#sequence = head
    this.#isReconnected = false
    return hasGap
  }
}
