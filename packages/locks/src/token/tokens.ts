import type { TokenCall } from './token-script.ts'

/** Names remembered; with more, a few extra epochs are started. */
const maxNames = 100_000

/**
 * What a process knows about its Redis' tokens: which names have issued one on the current connection, so that their
 * counter can be trusted (see `token-script.ts`), and the highest one seen.
 *
 * A client with several servers (a cluster, Sentinels) may silently follow a promotion over an existing connection:
 * there no counter is ever trusted.
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

  /** A token for this name arrived over this connection. */
  note(id: string, token: number): void {
    if (token > this.#seen) this.#seen = token
    if (this.#names.size >= maxNames && !this.#names.has(id)) this.#names = new Set()
    this.#names.add(id)
  }

  /**
   * The token of a call made on a connection, or a newer one if the connection has changed since: the call may then
   * have been sent over the new one, to a server whose counter lags behind. 0 if asking again (`ask`) says that the
   * lock is no longer ours.
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

  /** A call failed: the next one may reach another server before we are told. */
  doubt(): void {
    this.connection++
    this.#names = new Set()
  }
}
