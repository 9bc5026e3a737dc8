/**
 * What a connection has begun that a reply from memory would break: MULTI (the command must be queued), WATCH (the value
 * read under it must be the one that EXEC compares), ASKING (the next command must reach the node that was told), or
 * another user than the one that the shield reads as. Writes in a transaction happen at EXEC, so what guards them ends
 * when EXEC is answered.
 */
export class OpenState {
  isInTransaction = false
  isWatching = false
  isAsking = false
  /** True where the connection's user is another than the one that the shield reads as. */
  isStranger = false
  #ends: (() => void)[] = []

  /** True while reads must go to Redis. */
  get isBinding(): boolean {
    return this.isInTransaction || this.isWatching || this.isAsking || this.isStranger
  }

  /** Ends with the transaction. */
  hold(end: () => void): void {
    this.#ends.push(end)
  }

  /** EXEC or DISCARD goes out; what is returned is for its answer, undefined where nothing waits for that. */
  endTransaction(): (() => void) | undefined {
    this.isInTransaction = false
    this.isWatching = false
    if (this.#ends.length === 0) return undefined
    const ends = this.#ends
    this.#ends = []
    return () => {
      for (const end of ends) end()
    }
  }

  /** The connection was lost or reset, and with it all that was open. */
  reset(): void {
    this.endTransaction()?.()
    this.isAsking = false
    this.isStranger = false
  }
}
