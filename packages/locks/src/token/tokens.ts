import type { TokenCall } from './token-script.ts'

/** Names that are remembered; a few more epochs are started where there are more. */
const maxNames = 100_000

/**
 * What a process knows of the tokens of its Redis: which names have issued one on the present connection, so that their
 * counter can be trusted (see `token-script.ts`), and the highest one it has seen.
 *
 * Where a client reaches several servers (a cluster, a sentinel's) it may follow a promotion without a word, over a
 * connection that it had: there no counter is ever trusted.
 */
export class Tokens {
  readonly #isOneServer: boolean
  readonly #memoryMs: number
  #names = new Set<string>()
  #seen = 0
  /** The highest token seen before the last reconnect: Redis can only have forgotten what was before one. */
  #floor = 0
  /** Changes with the connection, and with every doubt about it. */
  connection = 0

  constructor(isOneServer: boolean, memoryMs: number) {
    this.#isOneServer = isOneServer
    this.#memoryMs = memoryMs
  }

  /** What a script that may issue a token for a name needs to know. */
  callFor(id: string): TokenCall {
    return {
      tokenFloor: this.#floor,
      isFirst: !this.#isOneServer || !this.#names.has(id),
      tokenMemoryMs: this.#memoryMs,
    }
  }

  /** A token of this name came over this connection. */
  note(id: string, token: number): void {
    if (token > this.#seen) this.#seen = token
    if (this.#names.size >= maxNames && !this.#names.has(id)) this.#names = new Set()
    this.#names.add(id)
  }

  /**
   * The token of a call that was made on a connection, or a newer one where that has changed since: then the call may have
   * been sent over the new one, to a server that counts from where the old one was some time ago. 0 where asking again
   * (`ask`) says that the lock is not ours any more.
   */
  async settled(id: string, token: number, connection: number, ask: () => Promise<number>): Promise<number> {
    let latest = token
    for (let asked = connection; asked !== this.connection && latest > 0; ) {
      asked = this.connection
      latest = await ask()
    }
    if (latest > 0) this.note(id, latest)
    return Math.max(0, latest)
  }

  /** A connection was re-established: to another server, or to the same one, perhaps with less data than before. */
  reconnected(): void {
    this.#floor = this.#seen
    this.doubt()
  }

  /** A call failed: the next one may reach another server before anybody has told. */
  doubt(): void {
    this.connection++
    this.#names = new Set()
  }
}
