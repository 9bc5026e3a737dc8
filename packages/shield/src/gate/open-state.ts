import type { CommandRow } from '@firebreak/core/commands'
import type { LoadedHandler } from '../cache/load.ts'
import type { LimitTurn } from './gate-request.ts'
import type { End } from './verdict.ts'

/**
 * Commands after which a connection is different: in a transaction, another database, another user, a subscriber,
 * closed.
 */
const changing: ReadonlySet<string> = new Set(
  'MULTI WATCH SELECT AUTH HELLO RESET SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR QUIT'.split(' '),
)

/**
 * What a connection has begun that a reply from memory would break: MULTI (the command must be queued), WATCH (the
 * value read under it must be the one that EXEC compares), ASKING (the next command must reach that node), a change of
 * database or user that is not answered yet, or another user than the one that the shield reads as. Writes in a
 * transaction happen at EXEC, so their guards end when EXEC is answered.
 */
export class OpenState {
  isInTransaction = false
  isWatching = false
  isAsking = false
  /** True if the connection's user differs from the one that the shield reads as. */
  isStranger = false
  /** True if nobody knows which database and user it has, until it is reset. */
  isUnknown = false
  /** Commands in flight that may change the database or user, and writes sent behind them. */
  #unsettled = 0
  #ends: End[] = []
  readonly #reads = new Set<LoadedHandler>()
  readonly #held = new Set<(turn: LimitTurn) => void>()

  /** True while reads must go to Redis. */
  get isBinding(): boolean {
    return this.isInTransaction || this.isWatching || this.isAsking || this.isStranger || this.isUnsettled
  }

  /** True while a command sent now may reach another database, or be sent as another user, than is known here. */
  get isUnsettled(): boolean {
    return this.#unsettled > 0 || this.isUnknown
  }

  /** What is being sent may change the database or user, or depends on that; the result is for its answer. */
  beginUnsettled(): () => void {
    this.#unsettled++
    return () => {
      this.#unsettled--
    }
  }

  /** Continues a held command when its turn comes, or when `beforeChange` sends it; `goOn` must not throw. */
  holdBack(until: Promise<unknown>, goOn: (turn: LimitTurn) => void): void {
    const once = (turn: LimitTurn) => {
      if (this.#held.delete(once)) goOn(turn)
    }
    this.#held.add(once)
    until.then(() => once('paid'), once)
  }

  /** Starts a load for a read, which `beforeChange` may send to Redis before it ends; false if there is none. */
  load(begin: (handler: LoadedHandler) => boolean, handler: LoadedHandler): boolean {
    const once: LoadedHandler = (reply) => {
      if (this.#reads.delete(once)) handler(reply)
    }
    this.#reads.add(once)
    let isLoading = false
    try {
      isLoading = begin(once)
    } finally {
      // Its caller sends it after an error, so nobody else may.
      if (!isLoading) this.#reads.delete(once)
    }
    return isLoading
  }

  /**
   * A command is about to be examined. If the connection is different after it, waiting reads and what a limit holds
   * back are sent to Redis first: later they would be part of the transaction, or reach another database. `endsSoon`: a
   * transaction whose EXEC follows at once, which what is held back waits for.
   */
  beforeChange({ name }: CommandRow, endsSoon = false): void {
    if ((this.#reads.size === 0 && this.#held.size === 0) || !changing.has(name)) return
    // First what is held back: it may become a read that waits.
    if (!endsSoon || name !== 'MULTI') for (const goOn of [...this.#held]) goOn('paid')
    for (const read of [...this.#reads]) read(undefined)
  }

  /** Ends with the transaction. */
  hold(end: End): void {
    this.#ends.push(end)
  }

  /** EXEC or DISCARD is being sent; the result is for its answer, undefined if nothing waits for that. */
  endTransaction(): End | undefined {
    this.isInTransaction = false
    this.isWatching = false
    if (this.#ends.length === 0) return undefined
    const ends = this.#ends
    this.#ends = []
    return (reply) => {
      for (const end of ends) end(reply)
    }
  }

  /** The connection was lost or reset, along with everything open. */
  reset(): void {
    this.endTransaction()?.()
    this.isAsking = false
    this.isStranger = false
    this.isUnknown = false
  }
}
