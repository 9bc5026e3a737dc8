import type { ProxyClient } from '../client/proxy-client.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { RequestRest } from './request-rest.ts'

/** A request larger than this is not held back at all. */
const streamedBytes = 1024 * 1024

/**
 * A request too large to hold: it is forwarded over a dedicated connection as soon as its destination is known, and its
 * bytes follow as they arrive, no faster than Redis accepts them.
 *
 * A request that must be seen whole (over several slots of a cluster, or answered by the proxy itself) is held up to
 * `maxHeldBytes`; the rest of a larger one is read and discarded, and it is refused.
 */
export class LargeRequest {
  readonly #client: ProxyClient
  #rest: RequestRest | undefined
  /** Where the rest goes; undefined while it is discarded. */
  #lane: PinnedLane | undefined

  constructor(client: ProxyClient) {
    this.#client = client
  }

  /** True while the rest of a request is still to come. */
  get isOnItsWay(): boolean {
    return this.#rest !== undefined
  }

  /** True while Redis has accepted too little of it for more to follow. */
  get mustWait(): boolean {
    return this.#rest !== undefined && this.#lane?.mustWait === true
  }

  /** Bytes of the current request that are worth reserving space for. */
  get missingBytes(): number {
    return Math.min(this.#client.parser.missingBytes, streamedBytes)
  }

  /** Starts forwarding, or discarding, the incomplete request at `start` if it is too large to hold. */
  begin(bytes: Buffer, start: number, end: number): boolean {
    const { parser, request, session, host, own } = this.#client
    const size = end - start + parser.missingBytes
    if (size <= streamedBytes || parser.length === 0) return false
    // A connection that owes nothing any more is about to be returned; then this is called again.
    if (own.pinned?.isFree === true) return false
    request.take(bytes, start, end)
    const node = session.isKnown ? this.#nodeFor() : undefined
    if (node === undefined) {
      if (size <= host.maxHeldBytes) return false
      this.#lane = undefined
    } else {
      if (!own.begin(node)) return false
      this.#lane = own.pinned
    }
    const isInArgument = parser.missingBytes > 0
    const further = parser.expectedLength - parser.length - (isInArgument ? 1 : 0)
    this.#rest = new RequestRest(parser.missingBytes, further)
    if (!isInArgument) this.#rest.take(bytes, parser.readEnd, end)
    parser.reset()
    return true
  }

  /** Forwards what belongs to the request; returns the offset after it. */
  forward(bytes: Buffer, length: number): number {
    const end = this.#rest!.take(bytes, 0, length)
    // If the connection was refused, the request has been answered, and its rest is discarded.
    if (this.#lane?.connection.isClosed === false) this.#lane.forward(bytes, 0, end)
    if (this.#rest!.isDone) this.#end()
    return end
  }

  #end(): void {
    const lane = this.#lane
    this.#rest = this.#lane = undefined
    if (lane === undefined) this.#refuse()
    else lane.isMidRequest = false
    // It was answered before all of it had arrived.
    if (lane?.isFree === true) this.#client.own.onPinnedFree()
  }

  /** The destination of a request whose first arguments have arrived; undefined if it must be seen whole. */
  #nodeFor(): UpstreamNode | undefined {
    const { host, own, args, request, cluster } = this.#client
    const { way, row, mark, subcommands } = request.command
    // What the reply says about the connection depends on arguments that have not arrived yet.
    if (mark !== undefined && row !== undefined) return undefined
    if (way !== 'shared' && way !== 'script' && row !== undefined) return undefined
    // Without the second word we cannot tell a command from a subcommand.
    if (subcommands !== undefined && args.length < 2) return undefined
    if (cluster !== undefined) return cluster.nodeForLarge()
    return own.pinned?.node ?? host.node
  }

  #refuse(): void {
    const { maxHeldBytes } = this.#client.host
    this.#client.answerNow(
      Buffer.from(
        `-ERR Firebreak: this request must be held in memory as a whole, but it is larger than ${maxHeldBytes} bytes (maxHeldBytes)\r\n`,
      ),
    )
  }
}
