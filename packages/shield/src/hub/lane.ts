/**
 * The invalidation lane as seen by this process. One sequence runs through the whole lane and its head is in every
 * heartbeat, so that a lost message is noticed: any gap means that something unknown may have changed, and everything
 * that only the lane would have reported is flushed.
 */
export class Lane {
  #hubId = ''
  #sequence: number | undefined
  #isReconnected = false

  /** A hub answered: another hub has another lane. */
  connected(hubId: string): void {
    if (hubId !== this.#hubId) this.#sequence = undefined
    this.#isReconnected = this.#hubId !== ''
    this.#hubId = hubId
  }

  disconnected(): void {
    this.#isReconnected = true
  }

  /** A message arrived; true if an earlier one is missing. */
  received(sequence: number): boolean {
    const hasGap = this.#sequence === undefined ? this.#isReconnected : sequence !== this.#sequence + 1
    this.#sequence = sequence
    return hasGap
  }

  /** A heartbeat stated the head; true if messages before it are missing. */
  heard(head: number): boolean {
    const hasGap = this.#sequence === undefined ? this.#isReconnected : head !== this.#sequence
    this.#sequence = head
    this.#isReconnected = false
    return hasGap
  }
}
