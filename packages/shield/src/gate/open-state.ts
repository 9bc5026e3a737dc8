import type { CommandRow } from '@firebreak/core/commands'
import type { LoadedHandler } from '../cache/load.ts'

/**
 * Commands after which a connection is different: in a transaction, another database, another user, a subscriber,
 * closed.
 */
const changing: ReadonlySet<string> = new Set(
  'MULTI WATCH SELECT AUTH HELLO RESET SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR QUIT'.split(' '),
)

/**
 * What a connection has begun that a reply from memory would break: MULTI (the command must be queued), WATCH (the
 * value read under it must be the one that EXEC compares), ASKING (the next command must reach that node), or another
 * user than the one that the shield reads as. Writes in a transaction happen at EXEC, so their guards end when EXEC is
 * answered.
 */
export class OpenState {
  isInTransaction = false
  isWatching = false
  isAsking = false
  /** True if the connection's user differs from the one that the shield reads as. */
  isStranger = false
  #ends: (() => void)[] = []
  readonly #reads = new Set<LoadedHandler>()

  /** True while reads must go to Redis. */
  get isBinding(): boolean {
    return this.isInTransaction || this.isWatching || this.isAsking || this.isStranger
  }

  /** Starts a load for a read, which `beforeChange` may send to Redis before it ends; false if there is none. */
  load(begin: (handler: LoadedHandler) => boolean, handler: LoadedHandler): boolean {
    const once: LoadedHandler = (reply) => {
      if (this.#reads.delete(once)) handler(reply)
    }
    this.#reads.add(once)
    if (begin(once)) return true
    this.#reads.delete(once)
    return false
  }

  /**
   * A command is about to be examined. If the connection is different after it, waiting reads are sent to Redis first:
   * later they would be part of the transaction, or read from another database.
   */
  beforeChange({ name }: CommandRow): void {
    if (this.#reads.size === 0 || !changing.has(name)) return
    for (const read of [...this.#reads]) read(undefined)
  }

  /** Ends with the transaction. */
  hold(end: () => void): void {
    this.#ends.push(end)
  }

  /** EXEC or DISCARD is being sent; the result is for its answer, undefined if nothing waits for that. */
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

  /** The connection was lost or reset, along with everything open. */
  reset(): void {
    this.endTransaction()?.()
    this.isAsking = false
    this.isStranger = false
  }
}
