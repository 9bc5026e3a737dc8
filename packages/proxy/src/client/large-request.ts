import { keySlotOfBytes } from '@firebreak/core'
import { proxyCommandOf } from '../commands/proxy-command.ts'
import type { ClientConnection } from './client-connection.ts'
import { RequestRest } from './request-rest.ts'

/** Of an argument with more bytes to come than this nothing is held back, and so much may wait on its way to Redis. */
const streamedBytes = 1024 * 1024

/**
 * A request with a value too large to be held: it is sent on over a connection of its own as soon as its command and key
 * are known, and its bytes follow as they come, no faster than Redis takes them.
 */
export class LargeRequest {
  readonly #client: ClientConnection
  #rest: RequestRest | undefined

  constructor(client: ClientConnection) {
    this.#client = client
  }

  /** True while the rest of one is to come. */
  get isOnItsWay(): boolean {
    return this.#rest !== undefined
  }

  /** True while Redis has not taken enough of it for more to come. */
  get mustWait(): boolean {
    const outlet = this.#rest === undefined ? undefined : this.#client.own.pinned?.connection.outlet
    if (outlet === undefined || outlet.queuedBytes <= streamedBytes) return false
    outlet.flush()
    return outlet.queuedBytes > streamedBytes
  }

  /** Bytes of the request at hand that are worth having room for. */
  get missingBytes(): number {
    return Math.min(this.#client.parser.missingBytes, streamedBytes)
  }

  /** Begins to send the request that begins at `start`, where it is a large one that need not be seen whole. */
  begin(bytes: Buffer, start: number, end: number): boolean {
    const { parser, args, host, session, own } = this.#client
    if (parser.missingBytes <= streamedBytes || parser.length === 0 || !session.isKnown) return false
    const command = proxyCommandOf(args)
    const { row } = command
    if (!command.isShared || row?.hasSingleKey !== true || parser.length <= row.firstKey) return false
    const { cluster } = host
    if (cluster !== undefined) this.#client.dispatchTo(cluster)
    const slot = keySlotOfBytes(this.#client.request.argument(row.firstKey))
    const node = cluster === undefined ? host.node : cluster.topology.nodeOf(slot)
    if (!own.begin(command, bytes, start, end, node)) return false
    this.#rest = new RequestRest(parser.missingBytes, parser.expectedLength - parser.length - 1)
    parser.reset()
    return true
  }

  /** Sends on what belongs to the request; gives the offset behind it. */
  forward(bytes: Buffer, length: number): number {
    const end = this.#rest!.take(bytes, 0, length)
    this.#client.own.pinned?.forward(bytes, 0, end)
    if (this.#rest!.isDone) this.#rest = undefined
    return end
  }
}
