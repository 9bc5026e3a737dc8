import { RequestError } from '@firebreak/core/resp'
import type { ProxyClient } from '../client/proxy-client.ts'
import type { PinnedLane } from '../lanes/pinned-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { RequestRest } from './request-rest.ts'

/** Of a request with more bytes than this nothing is held back. */
const streamedBytes = 1024 * 1024
/** What a client may send that has not said who it is, as Redis bounds it. */
const unknownArguments = 10
const unknownBytes = 16 * 1024

/**
 * A request too large to be held: it is sent on over a connection of its own as soon as it is known where it goes, and
 * its bytes follow as they come, no faster than Redis takes them.
 *
 * What has to be seen whole (a request over several slots of a cluster, one that the proxy answers itself) is held up to
 * `maxHeldBytes`; the rest of a larger one is read and thrown away, and it is refused.
 */
export class LargeRequest {
  readonly #client: ProxyClient
  #rest: RequestRest | undefined
  /** Where the rest goes; undefined while it is thrown away. */
  #lane: PinnedLane | undefined

  constructor(client: ProxyClient) {
    this.#client = client
  }

  /** True while the rest of one is to come. */
  get isOnItsWay(): boolean {
    return this.#rest !== undefined
  }

  /** True while Redis has not taken enough of it for more to come. */
  get mustWait(): boolean {
    return this.#rest !== undefined && this.#lane?.mustWait === true
  }

  /** Bytes of the request at hand that are worth having room for. */
  get missingBytes(): number {
    return Math.min(this.#client.parser.missingBytes, streamedBytes)
  }

  /** Begins to send, or to throw away, the incomplete request that begins at `start`, where it is too large to be held. */
  begin(bytes: Buffer, start: number, end: number): boolean {
    const { parser, request, session, host, own } = this.#client
    if (!session.isKnown && parser.expectedLength > unknownArguments) {
      throw new RequestError('unauthenticated multibulk length')
    }
    if (!session.isKnown && parser.missingBytes > unknownBytes) throw new RequestError('unauthenticated bulk length')
    const size = end - start + parser.missingBytes
    if (size <= streamedBytes || parser.length === 0) return false
    // A connection that owes nothing any more is about to be given back; then this comes again.
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

  /** Sends on what belongs to the request; gives the offset behind it. */
  forward(bytes: Buffer, length: number): number {
    const end = this.#rest!.take(bytes, 0, length)
    // Where the connection was refused the request is answered, and its rest is for nobody.
    if (this.#lane?.connection.isClosed === false) this.#lane.forward(bytes, 0, end)
    if (this.#rest!.isDone) this.#end()
    return end
  }

  #end(): void {
    const lane = this.#lane
    this.#rest = this.#lane = undefined
    if (lane === undefined) this.#refuse()
    else lane.isMidRequest = false
    // It was answered before it was all there.
    if (lane?.isFree === true) this.#client.own.onPinnedFree()
  }

  /** Where a request goes whose first arguments are there; undefined where it has to be seen whole. */
  #nodeFor(): UpstreamNode | undefined {
    const { host, own, args, request, cluster } = this.#client
    const { way, row, mark, subcommands } = request.command
    // What the reply says about the connection depends on arguments that are not there yet.
    if (mark !== undefined && row !== undefined) return undefined
    if (way !== 'shared' && way !== 'script' && row !== undefined) return undefined
    // Whether it is a command or a subcommand is not known before the second word is there.
    if (subcommands !== undefined && args.length < 2) return undefined
    if (cluster !== undefined) return cluster.nodeForLarge()
    return own.pinned?.node ?? host.node
  }

  #refuse(): void {
    const { maxHeldBytes } = this.#client.host
    this.#client.answerNow(
      Buffer.from(
        `-ERR Firebreak: this request has to be held whole, and it is larger than ${maxHeldBytes} bytes (maxHeldBytes)\r\n`,
      ),
    )
  }
}
