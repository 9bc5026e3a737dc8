import { createServer, type Server, type Socket } from 'node:net'
import { type Runtime, systemRuntime, type Timers } from '@firebreak/core'
import { RequestError, RequestParser, refuseHttp } from '@firebreak/core/resp'
import type { IdService } from './id-service.ts'
import { RespCommands, type RespConnectionState } from './resp-commands.ts'

/** Options for serving ids to Redis clients. */
export interface RespIdServerOptions {
  readonly service: IdService
  /** @default a free port */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** The password that clients must send with AUTH. @default none */
  readonly token?: string
  /** Connections beyond this are closed at once. @default 10000 */
  readonly maxConnections?: number
  /** A client that sends nothing for this long is closed. @default 300000 */
  readonly idleTimeoutMs?: number
  /** A client that has not authenticated after this long is closed. @default 10000 */
  readonly authTimeoutMs?: number
  /** Called for wrong passwords. @default a process warning */
  readonly warn?: (message: string) => void
  /** @default the system's */
  readonly runtime?: Runtime
}

export const respPortDefaults = { maxConnections: 10_000, idleTimeoutMs: 300_000, authTimeoutMs: 10_000 }

/** Ids are asked for with a few words. */
const maxRequestBytes = 64 * 1024
/** As in Redis for unauthenticated clients. */
const maxStrangerBytes = 16 * 1024
/** More requests than any client library sends before its password; a client that goes on without one only costs. */
const strangerRequests = 100
/** Replies beyond this are flushed before the next request is handled. */
const maxUnsentBytes = 256 * 1024
const nothing = Buffer.alloc(0)
const asterisk = 0x2a

/** A server that issues ids to any Redis client in any language. */
export class RespIdServer {
  readonly #server: Server
  readonly #commands: RespCommands
  readonly #connections = new Set<Connection>()

  private constructor(options: RespIdServerOptions) {
    const { timers, clock } = options.runtime ?? systemRuntime
    this.#commands = new RespCommands(options.service, options.token, { clock, warn: options.warn ?? warn })
    this.#server = createServer({ noDelay: true }, (socket) => {
      const connection = new Connection(socket, this.#commands, timers, () => this.#connections.delete(connection))
      this.#connections.add(connection)
      const { idleTimeoutMs = respPortDefaults.idleTimeoutMs, authTimeoutMs = respPortDefaults.authTimeoutMs } = options
      connection.expect(idleTimeoutMs, authTimeoutMs)
    })
    this.#server.maxConnections = options.maxConnections ?? respPortDefaults.maxConnections
  }

  static async start(options: RespIdServerOptions): Promise<RespIdServer> {
    const server = new RespIdServer(options)
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject)
      server.#server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve)
    })
    return server
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const connection of this.#connections) connection.end()
    await closed
  }
}

/** One client: requests are answered in order, and the replies to one chunk are sent in one piece. */
class Connection {
  readonly #socket: Socket
  readonly #commands: RespCommands
  readonly #timers: Timers
  readonly #parser = new RequestParser({ maxBulkBytes: maxRequestBytes, maxArguments: 1024 })
  readonly #state: RespConnectionState
  #unread: Buffer = nothing
  #isAnswering = false
  #strangerRequests = 0

  constructor(socket: Socket, commands: RespCommands, timers: Timers, onClose: () => void) {
    this.#socket = socket
    this.#commands = commands
    this.#timers = timers
    this.#state = commands.newConnection(socket.remoteAddress)
    socket.on('data', (chunk) => {
      this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
      if (!this.#isAnswering) void this.#answer()
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.on('close', onClose)
  }

  /** Closes the connection after being idle for this long; sooner while it is unauthenticated. */
  expect(idleTimeoutMs: number, authTimeoutMs: number): void {
    if (this.#state.isAllowed) {
      this.#socket.setTimeout(idleTimeoutMs)
      return
    }
    // Measured from the connection's start, whatever arrives meanwhile.
    const timer = this.#timers.setTimeout(
      () => {
        if (this.#state.isAllowed) this.#socket.setTimeout(idleTimeoutMs)
        else this.#socket.destroy()
      },
      Math.min(idleTimeoutMs, authTimeoutMs),
    )
    this.#socket.once('close', () => timer.cancel())
  }

  end(): void {
    this.#socket.destroySoon()
  }

  async #answer(): Promise<void> {
    this.#isAnswering = true
    let replies = ''
    let at = 0
    try {
      while (!this.#state.isQuitting && !this.#socket.destroyed) {
        const start = at
        const end = this.#parser.parse(this.#unread, start, this.#unread.length)
        if (end === 0) break
        at = end
        const { length } = this.#parser
        if (length === 0) continue
        refuseHttp(this.#parser, this.#unread[start] !== asterisk)
        const args: string[] = []
        for (let index = 1; index < length; index++) args.push(this.#argument(index))
        const name = this.#argument(0).toUpperCase()
        const reply = this.#commands.answer(name, args, this.#state)
        if (!this.#state.isAllowed && ++this.#strangerRequests > strangerRequests) {
          replies += '-NOAUTH Authentication required: too many requests without it\r\n'
          this.#state.isQuitting = true
          break
        }
        if (typeof reply === 'string') replies += reply
        else {
          // Waiting for the database: known replies are sent first, and reading is paused.
          if (replies !== '') this.#socket.write(replies)
          replies = await this.#whilePaused(reply)
        }
        if (replies.length > maxUnsentBytes) {
          await this.#send(replies)
          replies = ''
          // Gives the other connections a turn.
          await new Promise<void>((resolve) => void this.#timers.setImmediate(resolve))
        }
      }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      replies += `-${error.reply}\r\n`
      this.#state.isQuitting = true
    }
    this.#unread = at === this.#unread.length ? nothing : this.#unread.subarray(at)
    // The rest is the beginning of a request.
    if (this.#unread.length > (this.#state.isAllowed ? maxRequestBytes : maxStrangerBytes)) {
      replies += '-ERR Protocol error: too big request\r\n'
      this.#state.isQuitting = true
      this.#unread = nothing
    }
    if (this.#state.isQuitting) {
      // Discards whatever still arrives.
      this.#socket.pause()
      this.#socket.end(replies, () => this.#socket.destroy())
    } else if (replies !== '') await this.#send(replies)
    this.#isAnswering = false
  }

  /** Writes; if the client does not read its replies, waits and stops reading from it too. */
  #send(replies: string): Promise<void> | undefined {
    if (this.#socket.write(replies) || this.#socket.destroyed) return undefined
    const drained = new Promise<void>((resolve) => {
      this.#socket.once('drain', resolve)
      this.#socket.once('close', resolve)
    })
    return this.#whilePaused(drained)
  }

  async #whilePaused<T>(event: Promise<T>): Promise<T> {
    this.#socket.pause()
    const value = await event
    this.#socket.resume()
    return value
  }

  #argument(index: number): string {
    const bytes = this.#parser.bytes.subarray(this.#parser.startOf(index), this.#parser.endOf(index))
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  }
}

function warn(message: string): void {
  process.emitWarning(message, { type: 'FirebreakWarning', code: 'ids-password' })
}
