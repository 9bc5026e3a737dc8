import type { ProxyClient } from '../client/proxy-client.ts'
import { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { HeldBytes } from './held-bytes.ts'
import { JoinedReply } from './joined-reply.ts'
import { type SplitPart, splitRequest } from './split.ts'

/** What an MGET needs whose reply cannot be held whole. */
export interface LargeMgetOptions {
  readonly client: ProxyClient
  readonly keys: readonly Uint8Array[]
  /** Receives the reply in pieces, under `tag`, when it is its turn. */
  readonly target: ReplyTarget
  readonly tag: number
  readonly ask: (parts: readonly SplitPart[], target: ReplyTarget) => void
}

const minus = 0x2d
const mget = Buffer.from('MGET')
/** Before the only item of an array. */
const onlyHead = '*1\r\n'.length

/**
 * An MGET over several slots whose reply is larger than what may be held of it. Its items arrive from many nodes in no
 * order, so whatever is requested at once has to be held until it is complete; what does not fit is dropped and
 * requested again, half as many keys at a time, and each batch is sent before the next is requested. A single key is
 * not held at all. Batches grow again while they are far below the bound.
 *
 * The price: part of a large reply is read twice, and its values come from several moments, the later of which may
 * reflect what the same client sent after the MGET without waiting for it.
 */
export class LargeMget {
  readonly #options: LargeMgetOptions
  #next = 0
  #lot: number
  #hasBegun = false

  constructor(options: LargeMgetOptions) {
    this.#options = options
    this.#lot = Math.ceil(options.keys.length / 2)
  }

  /** Requests the next batch once the client has read enough. */
  goOn(): void {
    const { client, tag } = this.#options
    client.whenCaughtUp(() => {
      if (!client.isClosed) this.#ask()
    }, tag)
  }

  #ask(): void {
    const { keys, ask } = this.#options
    const some = keys.slice(this.#next, this.#next + this.#lot)
    const { parts } = splitRequest('MGET', [mget, ...some])!
    ask(parts, some.length === 1 ? this.#streamed() : this.#joined(parts, some.length))
  }

  #joined(parts: readonly SplitPart[], count: number): ReplyTarget {
    const { client, target, tag } = this.#options
    const places = parts.map((part) => part.places)
    return new JoinedReply(
      { kind: 'places', parts: parts.length, isWrite: false, places, held: new HeldBytes(client) },
      {
        answer: (reply) => {
          if (reply[0] === minus) this.#fail(reply)
          else this.#pass(reply, reply.indexOf(0x0a) + 1, reply.length, count)
        },
        onLost: (error, wasSent) => target.onLost(tag, error, wasSent),
        onOverflow: () => {
          this.#lot = Math.ceil(count / 2)
          this.goOn()
        },
      },
    )
  }

  /** The reply to one key, passed on as it arrives. */
  #streamed(): ReplyTarget {
    const { client, target, tag } = this.#options
    let headLeft = onlyHead
    let size = 0
    return {
      onReply: (_tag, bytes, start, end, isLast, type) => {
        if (type === minus) {
          this.#fail(bytes.subarray(start, end))
          return
        }
        const from = Math.min(end, start + headLeft)
        headLeft -= from - start
        size += end - from
        if (isLast) this.#pass(bytes, from, end, 1, size)
        else if (from < end) this.#put(bytes, from, end, false)
      },
      onLost: (_tag, error, wasSent) => target.onLost(tag, error, wasSent),
      isStalled: () => client.isStalled(tag),
      whenUnstalled: (callback) => client.whenUnstalled(callback, tag),
      isBehind: () => client.isBehind(tag),
      whenCaughtUp: (callback) => client.whenCaughtUp(callback, tag),
    }
  }

  /** Passes on the end of a batch, of `size` bytes in all, and continues with the next. */
  #pass(bytes: Buffer, start: number, end: number, count: number, size = end - start): void {
    const { keys, client } = this.#options
    this.#next += count
    if (size * 4 <= client.host.maxOutputBytes) this.#lot *= 2
    const isLast = this.#next >= keys.length
    this.#put(bytes, start, end, isLast)
    if (!isLast) this.goOn()
  }

  #put(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const { target, tag, keys } = this.#options
    if (!this.#hasBegun) {
      this.#hasBegun = true
      const head = Buffer.from(`*${keys.length}\r\n`)
      target.onReply(tag, head, 0, head.length, false, head[0]!)
    }
    target.onReply(tag, bytes, start, end, isLast, 0x2a)
  }

  /**
   * A node refused some of the keys. If others have already been sent, all that is left is to report that it was cut
   * short.
   */
  #fail(reply: Buffer): void {
    const { target, tag } = this.#options
    if (!this.#hasBegun) target.onReply(tag, reply, 0, reply.length, true, minus)
    else target.onLost(tag, new UpstreamLostError('the cluster', reply.toString('latin1').trim()), true)
  }
}
