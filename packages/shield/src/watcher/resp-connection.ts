import { type Clock, PushReply, ReplyDecoder, ReplyScanner, type RespValue } from '@firebreak/core'
import type { NodeSocket } from './upstream.ts'

/** Gets one whole reply as bytes, which are valid during the call only; undefined where the connection was lost. */
export type ReplyHandler = (reply: Uint8Array | undefined) => void

interface Waiting {
  readonly handler: ReplyHandler
  readonly sentAt: number
}

/** What a connection tells. */
export interface RespConnectionOptions {
  readonly clock: Clock
  /** A push arrived: its items. Called in the order of the bytes, between the replies around it. */
  readonly onPush: (items: readonly RespValue[]) => void
  readonly onClose: (error: unknown) => void
}

const pushMarker = 0x3e

/**
 * RESP on one socket: requests go out as bytes, replies come back as bytes in order, pushes are told apart. Every handler
 * runs synchronously in the parser, so that what a reply stores and what the push behind it drops cannot change places.
 */
export class RespConnection {
  /** When the newest request that was answered was sent: the server was there, and all its pushes before that are here. */
  answeredSentAt = Number.NEGATIVE_INFINITY
  readonly #socket: NodeSocket
  readonly #options: RespConnectionOptions
  readonly #scanner = new ReplyScanner()
  readonly #waiting: Waiting[] = []
  #head = 0
  #pieces: Uint8Array[] = []
  #isClosed = false

  constructor(socket: NodeSocket, options: RespConnectionOptions) {
    this.#socket = socket
    this.#options = options
    let failure: unknown
    socket.on('data', (chunk: Uint8Array) => this.#received(chunk))
    socket.on('error', (error: unknown) => {
      failure = error
    })
    socket.on('close', () => this.#closed(failure))
  }

  /** Sends requests that are already encoded; each gets its handler. */
  send(bytes: Uint8Array, handlers: readonly ReplyHandler[]): void {
    if (this.#isClosed) {
      for (const handler of handlers) handler(undefined)
      return
    }
    const sentAt = this.#options.clock.now()
    for (const handler of handlers) this.#waiting.push({ handler, sentAt })
    this.#socket.write(bytes)
  }

  destroy(): void {
    this.#socket.destroy()
    this.#closed(undefined)
  }

  #received(chunk: Uint8Array): void {
    if (this.#isClosed) return
    try {
      for (let at = 0; at < chunk.length && !this.#isClosed; ) {
        const end = this.#scanner.scan(chunk, at)
        const piece = chunk.subarray(at, end)
        at = end
        if (!this.#scanner.isDone) this.#pieces.push(piece)
        else this.#dispatch(this.#whole(piece))
      }
    } catch (error) {
      // Bytes that are no RESP: nothing behind them can be trusted.
      this.#socket.destroy()
      this.#closed(error)
    }
  }

  #whole(last: Uint8Array): Uint8Array {
    if (this.#pieces.length === 0) return last
    const all = Buffer.concat([...this.#pieces, last])
    this.#pieces = []
    return all
  }

  #dispatch(reply: Uint8Array): void {
    if (reply[0] === pushMarker) {
      const decoder = new ReplyDecoder()
      decoder.feed(reply)
      const push = decoder.next()
      if (push instanceof PushReply) this.#options.onPush(push.items)
      return
    }
    const waiting = this.#waiting[this.#head]
    if (waiting === undefined) throw new Error('a reply came that answers no request')
    this.#head++
    if (this.#head > 64 && this.#head * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#head)
      this.#head = 0
    }
    this.answeredSentAt = waiting.sentAt
    waiting.handler(reply)
  }

  #closed(error: unknown): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const left = this.#waiting.splice(this.#head)
    for (const { handler } of left) handler(undefined)
    this.#options.onClose(error)
  }
}
