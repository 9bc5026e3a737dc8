import type { ProxyClient } from '../client/proxy-client.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'

/** The server's reply to HELLO, adapted for the client: its own id, and the mode that the proxy presents. */
export function helloReply(client: ProxyClient, reply: Buffer): Buffer {
  const { host, own, id } = client
  const text = reply
    .toString('latin1')
    .replace(/(\$2\r\nid\r\n):\d+/, `$1:${own.pinned?.serverId ?? id}`)
    .replace(/(\$4\r\nmode\r\n)\$10\r\nstandalone/, (mode, name) =>
      host.onlyNode(client) === undefined ? mode : `${name}$7\r\ncluster`,
    )
  return Buffer.from(text, 'latin1')
}

/** The reply to a HELLO that changes nothing. */
export class HelloReply implements ReplyTarget {
  readonly #client: ProxyClient
  readonly slot: number
  readonly #pieces: Buffer[] = []

  constructor(client: ProxyClient) {
    this.#client = client
    this.slot = client.slots.take()
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (isLast) this.#client.answer(this.slot, helloReply(this.#client, Buffer.concat(this.#pieces)))
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#client.onLost(this.slot, error, wasSent)
  }
}
