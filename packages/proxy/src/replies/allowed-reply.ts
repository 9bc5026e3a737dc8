import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'

const pong = '+PONG'

/** An answer of the proxy's own to a client that the server answers a PING; what else the server says is passed on. */
export class AllowedReply implements ReplyTarget {
  readonly #client: ProxyClient
  readonly #slot: number
  readonly #answer: () => Uint8Array
  readonly #pieces: Buffer[] = []

  constructor(client: ProxyClient, slot: number, answer: () => Uint8Array) {
    this.#client = client
    this.#slot = slot
    this.#answer = answer
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (!isLast) return
    const reply = Buffer.concat(this.#pieces)
    const isLetIn = reply.toString('latin1', 0, pong.length) === pong
    this.#client.host.strangerAccess.learn(isLetIn)
    this.#client.answer(this.#slot, isLetIn ? this.#answer() : reply)
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.#slot, error, wasSent)
  }
}
