import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import {
  type CommandArgument,
  ErrorReply,
  encodeCommand,
  FirebreakError,
  PushReply,
  ReplyDecoder,
  type RespValue,
} from '@firebreak/core'
import { FindError } from '../errors.ts'
import { addressOf, defaultPort, type RedisTarget } from './target.ts'

/** The server answered a command with an error. */
export class ReplyError extends FirebreakError {
  /** The first word of the answer: `NOAUTH`, `MOVED`, `ERR`. */
  readonly kind: string

  constructor(command: string, reply: ErrorReply) {
    super('FB_FIND_REPLY', `the server answers ${command} with: ${reply.text}`)
    this.kind = reply.kind
  }
}

interface Expected {
  left: number
  readonly onReply: (reply: RespValue, index: number) => void
  count: number
  readonly done: () => void
  readonly failed: (error: Error) => void
}

/**
 * A connection to one server, in RESP2: commands go out at once, answers come back in order. `batch` sends many
 * commands in one write and hands each answer over as it comes, without a promise for each.
 */
export class RedisConnection {
  readonly address: string
  readonly #socket: Socket
  readonly #decoder = new ReplyDecoder()
  readonly #expected: Expected[] = []
  #first = 0
  #failure: Error | undefined
  /** Takes the raw bytes from now on, for what is no answer: MONITOR, a dump. */
  #raw: ((chunk: Buffer) => void) | undefined
  #onClose: ((error: Error) => void) | undefined

  private constructor(address: string, socket: Socket) {
    this.address = address
    this.#socket = socket
    socket.on('data', (chunk) => this.#data(chunk))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new FindError('FB_FIND_CONNECT', `${address} closed the connection`)))
  }

  /** Connects, authenticates and selects the database. */
  static async open(target: RedisTarget): Promise<RedisConnection> {
    const address = addressOf(target)
    const socket = await openSocket(target, address)
    const connection = new RedisConnection(address, socket)
    try {
      if (target.password !== undefined) {
        const user = target.username === undefined ? [] : [target.username]
        await connection.send(['AUTH', ...user, target.password])
      }
      if (target.database !== undefined && target.database !== 0) await connection.send(['SELECT', target.database])
      // Old servers and ACLs may refuse it; the name is a courtesy to whoever reads CLIENT LIST.
      await connection.send(['CLIENT', 'SETNAME', 'firebreak-find']).catch(() => {})
    } catch (error) {
      connection.close()
      throw error
    }
    return connection
  }

  get isClosed(): boolean {
    return this.#failure !== undefined
  }

  /** Sends one command; an answer that is an error rejects. */
  async send(args: readonly CommandArgument[]): Promise<RespValue> {
    let reply: RespValue = null
    await this.batch(encodeCommand(args), 1, (one) => {
      reply = one
    })
    if ((reply as RespValue) instanceof ErrorReply)
      throw new ReplyError(commandName(args), reply as unknown as ErrorReply)
    return reply
  }

  /** Sends bytes that hold `count` commands; resolves when the last answer has been handed to `onReply`. */
  batch(bytes: Uint8Array, count: number, onReply: (reply: RespValue, index: number) => void): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (count === 0) return Promise.resolve()
    return new Promise((done, failed) => {
      this.#expected.push({ left: count, count, onReply, done, failed })
      this.#writeThisTurn(bytes)
    })
  }

  /** What is sent in one turn leaves in one write: the server answers it in one go. */
  #writeThisTurn(bytes: Uint8Array): void {
    const socket = this.#socket
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(() => socket.uncork())
    }
    socket.write(bytes)
  }

  /** Writes bytes whose answers are not replies, and takes all that comes from now on as it is. */
  takeOver(bytes: Uint8Array, onChunk: (chunk: Buffer) => void, onClose: (error: Error) => void): void {
    this.#raw = onChunk
    this.#onClose = onClose
    if (this.#failure !== undefined) onClose(this.#failure)
    else this.#socket.write(bytes)
  }

  write(bytes: Uint8Array): void {
    if (this.#failure === undefined) this.#socket.write(bytes)
  }

  /** Stops and starts reading, for a consumer that must not be overrun. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Ends at once; what is under way rejects. */
  close(): void {
    this.#fail(new FindError('FB_FIND_CONNECT', `the connection to ${this.address} was closed`))
  }

  #data(chunk: Buffer): void {
    if (this.#raw !== undefined) {
      this.#raw(chunk)
      return
    }
    try {
      this.#decoder.feed(chunk)
      for (let reply = this.#decoder.next(); reply !== undefined; reply = this.#decoder.next()) {
        if (!(reply instanceof PushReply)) this.#answer(reply)
      }
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #answer(reply: RespValue): void {
    const expected = this.#expected[this.#first]
    if (expected === undefined) {
      throw new FindError('FB_FIND_CONNECT', `${this.address} sent an answer that nothing asked for`)
    }
    expected.onReply(reply, expected.count - expected.left)
    if (--expected.left > 0) return
    this.#first++
    if (this.#first > 64) {
      this.#expected.splice(0, this.#first)
      this.#first = 0
    }
    expected.done()
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#socket.destroy()
    for (const { failed } of this.#expected.splice(this.#first)) failed(error)
    this.#onClose?.(error)
  }
}

function openSocket(target: RedisTarget, address: string): Promise<Socket> {
  const place =
    target.socketPath === undefined
      ? { host: target.host ?? '127.0.0.1', port: target.port ?? defaultPort }
      : { path: target.socketPath }
  const tls = target.tls === true ? {} : target.tls === false ? undefined : target.tls
  return new Promise((resolve, reject) => {
    const socket =
      tls === undefined
        ? connectTcp({ ...place, noDelay: true })
        : connectTls({
            ...place,
            ...(tls.ca === undefined ? {} : { ca: tls.ca }),
            ...(tls.certificate === undefined ? {} : { cert: tls.certificate }),
            ...(tls.key === undefined ? {} : { key: tls.key }),
            ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
            rejectUnauthorized: tls.isVerified ?? true,
          })
    const timeoutMs = target.connectTimeoutMs ?? 5000
    const timer = setTimeout(() => fail(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
    const fail = (cause: Error) => {
      clearTimeout(timer)
      socket.destroy()
      reject(new FindError('FB_FIND_CONNECT', `cannot connect to ${address}: ${cause.message}`, { cause }))
    }
    socket.once('error', fail)
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}

/** What a message may say about a command: never its arguments, which may be a password. */
function commandName(args: readonly CommandArgument[]): string {
  const name = String(args[0])
  return /^(CLUSTER|CLIENT|CONFIG|OBJECT|MEMORY|SENTINEL|HOTKEYS|DEBUG|INFO)$/i.test(name) && args[1] !== undefined
    ? `${name} ${String(args[1])}`
    : name
}
