import { type Clock, encodeCommand } from '@firebreak/core'
import { type ReplyHandler, RespConnection } from '../watcher/resp-connection.ts'
import type { Upstream } from '../watcher/upstream.ts'

const errorMarker = 0x2d

/** A plain connection to a node that reads as the watcher does, in RESP3 where the server speaks it. */
export class ProbeConnection {
  readonly #connection: RespConnection
  #database = 0
  #isClosed = false

  constructor(upstream: Upstream, node: string, clock: Clock) {
    this.#connection = new RespConnection(upstream.connect(node), {
      clock,
      onPush: () => {},
      onClose: () => {
        this.#isClosed = true
      },
    })
    this.#greet(upstream)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Gives the reply of one command in a database; undefined where the connection was lost. */
  read(database: number, command: Uint8Array, handler: ReplyHandler): void {
    if (database !== this.#database) {
      this.#database = database
      this.#connection.send(encodeCommand(['SELECT', database]), [this.#closeOnError])
    }
    this.#connection.send(command, [handler])
  }

  close(): void {
    this.#connection.destroy()
  }

  #greet(upstream: Upstream): void {
    const { username, password } = upstream.credentials()
    const auth = password === undefined ? [] : ['AUTH', username ?? 'default', password]
    // A server without HELLO answers as the watcher's connection to it does, once it knows who we are.
    const older = password === undefined ? ['PING'] : ['AUTH', ...(username === undefined ? [] : [username]), password]
    this.#connection.send(encodeCommand(['HELLO', '3', ...auth]), [() => {}])
    this.#connection.send(encodeCommand(older), [this.#closeOnError])
  }

  /** Behind an error the next reply would be of another database, or of nobody. */
  readonly #closeOnError: ReplyHandler = (reply) => {
    if (reply?.[0] === errorMarker) this.#connection.destroy()
  }
}
