import { keySlot, keySlotOfBytes } from '@firebreak/core/commands'
import { ErrorReply, encodeCommand, ReplyDecoder } from '@firebreak/core/resp'
import type {
  Redis,
  RedisArgument,
  RedisNode,
  RedisReply,
  RedisScript,
  RedisSubscriber,
  RedisTopology,
  SendOptions,
} from '@firebreak/redis'
import { redirectOf } from '../cluster/redirect.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'

/** Where the proxy's own commands go. */
export interface ProxyNodes {
  readonly isCluster: boolean
  readonly turn: { read(): number }
  /** The proxy's own identity to Redis. */
  readonly serviceState: ConnectionState
  nodeFor(slot: number): UpstreamNode
  /** A node reported who has a slot now. */
  moved(slot: number, host: string, port: number, asked: UpstreamNode): UpstreamNode
}

/**
 * The Redis behind the proxy, for limits shared by all processes: the proxy's own commands go over its shared
 * connections.
 */
export class ProxyRedis implements Redis {
  readonly #nodes: ProxyNodes

  constructor(nodes: ProxyNodes) {
    this.#nodes = nodes
  }

  get topology(): RedisTopology {
    return this.#nodes.isCluster ? 'cluster' : 'standalone'
  }

  async send(args: readonly [string, ...RedisArgument[]], options: SendOptions = {}): Promise<RedisReply> {
    const key = options.key ?? args[1]
    const slot = typeof key === 'string' ? keySlot(key) : key instanceof Uint8Array ? keySlotOfBytes(key) : 0
    const node = this.#nodes.nodeFor(slot)
    const request = encodeCommand(args)
    const reply = await this.#ask(node, request)
    // A redirection means that nothing was done: one retry at the right node cannot do it twice.
    const redirect = reply instanceof ErrorReply ? redirectOf(Buffer.from(`-${reply.text}\r\n`)) : undefined
    const last =
      redirect?.kind !== 'moved'
        ? reply
        : await this.#ask(this.#nodes.moved(redirect.slot, redirect.host, redirect.port, node), request)
    if (last instanceof ErrorReply) throw new Error(last.text)
    return last as RedisReply
  }

  /** Runs a script by its digest, or with its source if the server does not know it: then nothing has run yet. */
  async run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options: SendOptions = {},
  ): Promise<RedisReply> {
    const rest = [keys.length, ...keys, ...args]
    const routed = keys.length === 0 ? options : { ...options, key: keys[0]! }
    try {
      return await this.send(['EVALSHA', script.sha1, ...rest], routed)
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
      return this.send(['EVAL', script.source, ...rest], routed)
    }
  }

  async masters(): Promise<RedisNode[]> {
    return []
  }

  subscriber(): Promise<RedisSubscriber> {
    return Promise.reject(new Error('the proxy does not subscribe to channels itself'))
  }

  // Lanes reconnect on their next use; there is no moment to report.
  onReconnect(): () => void {
    return () => {}
  }

  #ask(node: UpstreamNode, request: Uint8Array): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const lane = node.lane(this.#nodes.serviceState)
      lane.send(request, 0, request.length, new PromisedReply(resolve, reject), 0, 0, this.#nodes.turn.read())
    })
  }
}

class PromisedReply implements ReplyTarget {
  readonly #decoder = new ReplyDecoder({ bulk: 'text' })
  readonly #resolve: (reply: unknown) => void
  readonly #reject: (error: Error) => void

  constructor(resolve: (reply: unknown) => void, reject: (error: Error) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#decoder.feed(Buffer.from(bytes.subarray(start, end)))
    if (isLast) this.#resolve(this.#decoder.next() ?? null)
  }

  onLost(_tag: number, error: UpstreamLostError): void {
    this.#reject(error)
  }
}
