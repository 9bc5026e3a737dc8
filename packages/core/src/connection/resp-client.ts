import { type CommandArgument, encodeCommand } from '../resp/encode-command.ts'
import { ReplyDecoder } from '../resp/reply-decoder.ts'
import { ErrorReply, type RespValue } from '../resp/value.ts'
import { type Runtime, systemRuntime } from '../time/runtime.ts'
import type { OpenPipe } from './byte-pipe.ts'
import { type Greeting, greet } from './greeting.ts'
import { RedisLostError, RedisReplyError } from './redis-error.ts'
import { RespConnection, type RespConnectionOptions } from './resp-connection.ts'

/** How a client connects, and what it does with replies. */
export interface RespClientOptions
  extends Greeting,
    Pick<RespConnectionOptions, 'address' | 'onPush' | 'replyTimeoutMs' | 'maxWaiting' | 'maxReplyBytes'> {
  /** Time limit for connecting and greeting together. @default 5000 */
  readonly connectTimeoutMs?: number
  /** The connection counts as lost if a reply is due and nothing has arrived for this long. @default 60000 */
  readonly replyTimeoutMs?: number
  /** Whether bulk strings are returned as bytes or text. @default 'bytes' */
  readonly bulk?: 'bytes' | 'text'
  /** @default systemRuntime */
  readonly runtime?: Pick<Runtime, 'clock' | 'timers'>
}

/**
 * A request-reply connection to one server: commands are sent at once, and answers arrive in order. `batch` sends many
 * commands in one write and hands over each answer as it arrives, without a promise for each. It does not reconnect.
 */
export class RespClient {
  readonly #connection: RespConnection
  readonly #decoder: ReplyDecoder
  #onOpen: (() => void) | undefined
  #onClose: ((error: Error) => void) | undefined

  private constructor(open: OpenPipe, options: RespClientOptions) {
    this.#decoder = new ReplyDecoder({ bulk: options.bulk === 'text' ? 'text' : 'view' })
    this.#connection = new RespConnection(open, {
      replyTimeoutMs: 60_000,
      ...options,
      runtime: options.runtime ?? systemRuntime,
      onOpen: () => this.#onOpen?.(),
      onClose: (error) => this.#onClose?.(error),
    })
  }

  /** Connects, authenticates, and selects the database. */
  static async open(open: OpenPipe, options: RespClientOptions): Promise<RespClient> {
    const { timers } = options.runtime ?? systemRuntime
    const timeoutMs = options.connectTimeoutMs ?? 5000
    const client = new RespClient(open, options)
    const timer = timers.setTimeout(() => {
      const sentence = `cannot connect to ${client.address}: no answer within ${timeoutMs} ms`
      client.#connection.close(new RedisLostError('FB_REDIS_TIMEOUT', client.address, sentence))
    }, timeoutMs)
    try {
      await client.#greeted(options)
      return client
    } catch (error) {
      client.close()
      throw error
    } finally {
      timer.cancel()
    }
  }

  get address(): string {
    return this.#connection.address
  }

  get isClosed(): boolean {
    return this.#connection.failure !== undefined
  }

  /** Sends one command; an error reply rejects. */
  async send(args: readonly CommandArgument[]): Promise<RespValue> {
    let reply: RespValue = null
    await this.batch(encodeCommand(args), 1, (one) => {
      reply = one
    })
    if ((reply as RespValue) instanceof ErrorReply) {
      throw new RedisReplyError(commandName(args), reply as unknown as ErrorReply)
    }
    return reply
  }

  /** Sends one encoded command and returns the raw bytes of its reply; an error is a reply like any other. */
  ask(bytes: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#connection.send(bytes, 1, (reply) => {
        if (reply === undefined) reject(this.#connection.failure!)
        else resolve(reply)
      })
    })
  }

  /** Sends bytes that hold `count` commands; resolves when the last answer has been handed to `onReply`. */
  batch(bytes: Uint8Array, count: number, onReply: (reply: RespValue, index: number) => void): Promise<void> {
    if (count === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#connection.send(bytes, count, (reply, index) => {
        if (reply === undefined) {
          reject(this.#connection.failure!)
          return
        }
        try {
          this.#decoder.feed(reply)
          onReply(this.#decoder.next()!, index)
        } catch (error) {
          reject(error as Error)
          throw error
        }
        if (index === count - 1) resolve()
      })
    })
  }

  /**
   * Writes bytes whose answers are not replies (MONITOR, PSYNC), and from now on passes on raw chunks. `onClose`
   * reports why the connection ended, even if we closed it.
   */
  takeOver(bytes: Uint8Array, onChunk: (chunk: Uint8Array) => void, onClose: (error: Error) => void): void {
    const { failure } = this.#connection
    if (failure !== undefined) {
      onClose(failure)
      return
    }
    this.#onClose = onClose
    this.#connection.takeOver(bytes, onChunk)
  }

  /** Writes bytes that get no answer. */
  write(bytes: Uint8Array): void {
    this.#connection.write(bytes)
  }

  /** Pauses and resumes reading, for a consumer that must not be flooded. */
  pause(): void {
    this.#connection.pause()
  }

  resume(): void {
    this.#connection.resume()
  }

  /** Closes at once; requests in flight reject. */
  close(): void {
    this.#connection.close()
  }

  #greeted(greeting: Greeting): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onClose = reject
      this.#onOpen = () =>
        greet(this.#connection, greeting, (result) => {
          if (result.kind === 'ready') resolve()
          else if (result.kind === 'refused') reject(new RedisReplyError(result.command, result.reply))
        })
    })
  }
}

/** What a message may say about a command: never its arguments, which may be a password. */
function commandName(args: readonly CommandArgument[]): string {
  const name = String(args[0])
  return /^(CLUSTER|CLIENT|CONFIG|OBJECT|MEMORY|SENTINEL|HOTKEYS|DEBUG|INFO)$/i.test(name) && args[1] !== undefined
    ? `${name} ${String(args[1])}`
    : name
}
