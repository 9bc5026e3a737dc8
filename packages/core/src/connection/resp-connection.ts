import { checkedBound } from '../resp/limits.ts'
import { marker } from '../resp/markers.ts'
import { ReplyDecoder } from '../resp/reply-decoder.ts'
import { ReplyScanner } from '../resp/reply-scanner.ts'
import { RespError } from '../resp/resp-error.ts'
import { joinBytes } from '../resp/text.ts'
import { PushReply, type RespValue } from '../resp/value.ts'
import type { TimerHandle } from '../time/clock.ts'
import type { Runtime } from '../time/runtime.ts'
import type { BytePipe, OpenPipe } from './byte-pipe.ts'
import { lostError, RedisLostError } from './redis-error.ts'

/**
 * Receives one whole reply as bytes, synchronously from the parser; `index` numbers the replies to one `send`.
 * Undefined if the connection was lost: `failure` says why.
 */
export type ReplyHandler = (reply: Uint8Array | undefined, index: number) => void

/** Options and callbacks of a connection. */
export interface RespConnectionOptions {
  /** The server's name in errors, such as `127.0.0.1:6379`. */
  readonly address: string
  readonly runtime: Pick<Runtime, 'clock' | 'timers'>
  /** Connected; nothing has been answered yet. */
  readonly onOpen?: () => void
  /** A push arrived, with these items. Called in byte order, between the replies around it. */
  readonly onPush?: (items: readonly RespValue[]) => void
  /** Called once, after every waiting handler, even if we closed the connection. */
  readonly onClose?: (error: Error) => void
  /** The connection counts as lost if a reply is due and nothing has arrived for this long. @default never */
  readonly replyTimeoutMs?: number
  /** Maximum number of `send`s waiting for replies. One more and the connection counts as lost. @default 262144 */
  readonly maxWaiting?: number
  /** Maximum size of one reply in bytes. @default 1073741824 */
  readonly maxReplyBytes?: number
}

interface Expectation {
  readonly handler: ReplyHandler
  readonly count: number
  readonly sentAt: number
}

/**
 * RESP over one pipe: requests go out as bytes, replies come back as bytes in order, and pushes are separated from
 * them.
 *
 * Every handler runs synchronously in the parser, so that storing a reply and dropping it on the push that follows
 * cannot happen in the wrong order. A lost connection stays lost: it does not reconnect. A full queue closes it, since
 * dropping one request from the middle (a SELECT, say) would change the meaning of every later one.
 */
export class RespConnection {
  /**
   * When the newest answered request was sent: the server was reachable then, and we have all its pushes from before
   * that.
   */
  answeredSentAt: number = Number.NEGATIVE_INFINITY
  /** When bytes last arrived, or the pipe opened. */
  heardAt: number
  readonly address: string
  readonly #pipe: BytePipe
  readonly #options: RespConnectionOptions
  readonly #maxWaiting: number
  readonly #maxReplyBytes: number
  readonly #scanner = new ReplyScanner()
  readonly #expected: Expectation[] = []
  #head = 0
  /** Replies received for the first expectation. */
  #given = 0
  #pieces: Uint8Array[] = []
  #pieceBytes = 0
  #isOpen = false
  #failure: Error | undefined
  #raw: ((chunk: Uint8Array) => void) | undefined
  #deadline: TimerHandle | undefined

  constructor(open: OpenPipe, options: RespConnectionOptions) {
    this.#options = options
    this.address = options.address
    this.#maxWaiting = checkedBound('maxWaiting', options.maxWaiting ?? 262_144)
    this.#maxReplyBytes = checkedBound('maxReplyBytes', options.maxReplyBytes ?? 2 ** 30)
    this.heardAt = options.runtime.clock.now()
    this.#pipe = open({
      onOpen: () => this.#opened(),
      onData: (chunk) => this.#received(chunk),
      onEnd: (cause) => this.#lose(lostError(this.address, this.#isOpen, cause)),
    })
  }

  get isOpen(): boolean {
    return this.#isOpen && this.#failure === undefined
  }

  /** Why the connection is gone; undefined while it is open. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Sends bytes that contain `count` requests; `handler` receives each reply. */
  send(bytes: Uint8Array, count: number, handler: ReplyHandler): void {
    if (this.#failure === undefined && this.#expected.length - this.#head >= this.#maxWaiting) {
      const sentence = `${this.address} owes replies to ${this.#maxWaiting} requests, the maximum`
      this.#lose(new RedisLostError('FB_REDIS_QUEUE_FULL', this.address, sentence))
    }
    if (this.#failure !== undefined) {
      for (let index = 0; index < count; index++) handler(undefined, index)
      return
    }
    this.#expected.push({ handler, count, sentAt: this.#options.runtime.clock.now() })
    this.#pipe.write(bytes)
    this.#watchTime()
  }

  /** Writes bytes whose answers are not replies (MONITOR, PSYNC), and from now on passes on raw chunks. */
  takeOver(bytes: Uint8Array, onChunk: (chunk: Uint8Array) => void): void {
    this.#raw = onChunk
    this.write(bytes)
  }

  /** Writes bytes that get no answer. */
  write(bytes: Uint8Array): void {
    if (this.#failure === undefined) this.#pipe.write(bytes)
  }

  pause(): void {
    this.#pipe.pause()
  }

  resume(): void {
    this.#pipe.resume()
  }

  /** Closes at once; handlers that wait for a reply get undefined. */
  close(reason?: Error): void {
    const sentence = `the connection to ${this.address} was closed`
    this.#lose(reason ?? new RedisLostError('FB_REDIS_CLOSED', this.address, sentence))
  }

  #opened(): void {
    this.#isOpen = true
    this.heardAt = this.#options.runtime.clock.now()
    this.#options.onOpen?.()
  }

  #received(chunk: Uint8Array): void {
    this.heardAt = this.#options.runtime.clock.now()
    try {
      for (let at = 0; at < chunk.length && this.#failure === undefined; ) {
        if (this.#raw !== undefined) {
          this.#raw(at === 0 ? chunk : chunk.subarray(at))
          return
        }
        const end = this.#scanner.scan(chunk, at)
        const piece = at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end)
        at = end
        if (this.#scanner.isDone) this.#dispatch(this.#whole(piece))
        else this.#keep(piece)
      }
    } catch (error) {
      // Bytes that are not RESP, or a handler that failed: nothing that follows can be trusted.
      this.#lose(error as Error)
    }
  }

  #keep(piece: Uint8Array): void {
    this.#pieces.push(piece)
    this.#pieceBytes += piece.length
    if (this.#pieceBytes <= this.#maxReplyBytes) return
    throw new RespError('FB_RESP_TOO_LARGE', `a reply exceeds maxReplyBytes, ${this.#maxReplyBytes}`)
  }

  #whole(last: Uint8Array): Uint8Array {
    if (this.#pieces.length === 0) return last
    this.#keep(last)
    const all = joinBytes(this.#pieces)
    this.#pieces = []
    this.#pieceBytes = 0
    return all
  }

  #dispatch(reply: Uint8Array): void {
    if (this.#scanner.isPush) {
      this.#options.onPush?.(pushItems(reply))
      return
    }
    const expectation = this.#expected[this.#head]
    if (expectation === undefined) throw new RespError('FB_RESP_PROTOCOL', 'received a reply without a request')
    const index = this.#given++
    if (this.#given === expectation.count) this.#next()
    this.answeredSentAt = expectation.sentAt
    expectation.handler(reply, index)
  }

  #next(): void {
    this.#given = 0
    this.#head++
    if (this.#head > 64 && this.#head * 2 > this.#expected.length) {
      this.#expected.splice(0, this.#head)
      this.#head = 0
    }
  }

  /**
   * One timer for all waiting requests: it checks again when the time since the last bytes, or since the first request,
   * may be up.
   */
  #watchTime(): void {
    const { replyTimeoutMs, runtime } = this.#options
    if (replyTimeoutMs === undefined || this.#deadline !== undefined) return
    const first = this.#expected[this.#head]
    if (first === undefined || this.#failure !== undefined) return
    const leftMs = Math.max(first.sentAt, this.heardAt) + replyTimeoutMs - runtime.clock.now()
    if (leftMs <= 0) {
      const sentence = `${this.address} has not answered for ${replyTimeoutMs} ms`
      this.#lose(new RedisLostError('FB_REDIS_TIMEOUT', this.address, sentence))
      return
    }
    this.#deadline = runtime.timers.setTimeout(() => {
      this.#deadline = undefined
      this.#watchTime()
    }, leftMs)
  }

  #lose(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#deadline?.cancel()
    this.#pipe.close()
    const left = this.#expected.splice(this.#head)
    const given = this.#given
    left.forEach(({ handler, count }, place) => {
      for (let index = place === 0 ? given : 0; index < count; index++) handler(undefined, index)
    })
    this.#options.onClose?.(error)
  }
}

function pushItems(bytes: Uint8Array): readonly RespValue[] {
  const decoder = new ReplyDecoder()
  decoder.feed(bytes)
  const push = decoder.next()
  return push instanceof PushReply ? push.items : []
}

/** True for an error reply of either kind. */
export function isErrorReply(reply: Uint8Array): boolean {
  return reply[0] === marker.error || reply[0] === marker.blobError
}
