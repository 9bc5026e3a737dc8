import { FirebreakError } from '@firebreak/core'
import type {
  Redis,
  RedisArgument,
  RedisNode,
  RedisReply,
  RedisSubscriber,
  RedisTopology,
  SendOptions,
} from '../redis.ts'
import type { RedisScript } from '../script/redis-script.ts'
import { ScriptRunner } from '../script/script-runner.ts'

type MessageListener = (message: string, channel: string) => void

/** What the adapter uses of a node-redis 5 or 6 client, cluster or sentinel; `sendCommand` differs between the three. */
export interface NodeRedisLike {
  sendCommand(...args: never[]): Promise<unknown>
  withTypeMapping(mapping: Record<number, unknown>): NodeRedisLike
  duplicate?(...args: never[]): NodeRedisLike
  connect(): Promise<unknown>
  destroy?(): void
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  subscribe?(channel: string, listener: MessageListener): Promise<unknown>
  unsubscribe?(channel: string, listener: MessageListener): Promise<unknown>
  sSubscribe?(channel: string, listener: MessageListener): Promise<unknown>
  sUnsubscribe?(channel: string, listener: MessageListener): Promise<unknown>
  readonly isReady?: boolean
  /** Cluster: its masters, each with a lazily made client. */
  readonly masters?: readonly NodeRedisMaster[]
  nodeClient?(node: NodeRedisMaster): Promise<NodeRedisLike> | NodeRedisLike
  /** Sentinel: only it can lend out a client. */
  acquire?(): Promise<unknown>
}

interface NodeRedisMaster {
  readonly address: string
}

const blobString = 36
const bytesOptions = { typeMapping: { [blobString]: Buffer } }

/** Firebreak's narrow Redis over a node-redis client (version 5 or 6; client, cluster or sentinel). */
export function fromNodeRedis(client: NodeRedisLike): Redis {
  return new NodeRedisRedis(client)
}

type Encoded = string | Buffer

function toNodeRedis(args: readonly RedisArgument[]): Encoded[] {
  return args.map((arg) => {
    if (typeof arg === 'string') return arg
    if (typeof arg === 'number') return String(arg)
    return Buffer.isBuffer(arg) ? arg : Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength)
  })
}

function topologyOf(client: NodeRedisLike): RedisTopology {
  if (client.nodeClient !== undefined && client.masters !== undefined) return 'cluster'
  return client.acquire !== undefined ? 'sentinel' : 'standalone'
}

function watchReconnect(client: NodeRedisLike, listener: () => void): () => void {
  let wasReady = client.isReady === true
  const onReady = () => {
    if (wasReady) listener()
    wasReady = true
  }
  // A cluster names its nodes' events `node-ready`.
  client.on('ready', onReady)
  client.on('node-ready', onReady)
  return () => {
    client.off('ready', onReady)
    client.off('node-ready', onReady)
  }
}

class NodeRedisRedis implements Redis {
  readonly topology: RedisTopology
  readonly #client: NodeRedisLike
  readonly #scripts: ScriptRunner

  constructor(client: NodeRedisLike) {
    this.#client = client
    this.topology = topologyOf(client)
    this.#scripts = new ScriptRunner((args, options) => this.send(args, options))
  }

  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply> {
    const encoded = toNodeRedis(args)
    const sendCommand = this.#client.sendCommand as unknown as (...args: unknown[]) => Promise<RedisReply>
    const commandOptions = options?.asBytes ? bytesOptions : undefined
    if (this.topology === 'cluster') {
      const key = options?.key === undefined ? encoded[1] : toNodeRedis([options.key])[0]
      return sendCommand.call(this.#client, key, false, encoded, commandOptions)
    }
    if (this.topology === 'sentinel') return sendCommand.call(this.#client, false, encoded, commandOptions)
    return sendCommand.call(this.#client, encoded, commandOptions)
  }

  run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options?: SendOptions,
  ): Promise<RedisReply> {
    return this.#scripts.run(script, keys, args, options)
  }

  async masters(): Promise<RedisNode[]> {
    if (this.topology !== 'cluster') return [{ address: 'server', send: (args, options) => this.send(args, options) }]
    return (this.#client.masters ?? []).map((master) => ({
      address: master.address,
      send: async (args: readonly [string, ...RedisArgument[]], options?: SendOptions) => {
        const node = await this.#client.nodeClient!(master)
        const sendCommand = node.sendCommand as unknown as (...args: unknown[]) => Promise<RedisReply>
        return sendCommand.call(node, toNodeRedis(args), options?.asBytes ? bytesOptions : undefined)
      },
    }))
  }

  async subscriber(): Promise<RedisSubscriber> {
    if (this.#client.duplicate === undefined) return new NodeRedisSubscriber(this.#client, false, false)
    const client = this.#client.duplicate()
    client.on('error', () => {})
    await client.connect()
    return new NodeRedisSubscriber(client, this.topology === 'cluster', true)
  }

  onReconnect(listener: () => void): () => void {
    return watchReconnect(this.#client, listener)
  }
}

class NodeRedisSubscriber implements RedisSubscriber {
  readonly #client: NodeRedisLike
  readonly #sharded: boolean
  readonly #ownsClient: boolean
  readonly #listeners = new Map<string, MessageListener>()

  constructor(client: NodeRedisLike, sharded: boolean, ownsClient: boolean) {
    this.#client = client
    this.#sharded = sharded
    this.#ownsClient = ownsClient
  }

  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    const wrapped: MessageListener = (message) => listener(message)
    const before = this.#listeners.get(channel)
    this.#listeners.set(channel, wrapped)
    const subscribe = this.#sharded ? this.#client.sSubscribe : this.#client.subscribe
    if (subscribe === undefined) {
      throw new FirebreakError(
        'FB_SUBSCRIBE_UNSUPPORTED',
        'this node-redis client has no subscribe; pass a client, cluster or sentinel',
      )
    }
    await subscribe.call(this.#client, channel, wrapped)
    if (before !== undefined) await this.#remove(channel, before)
  }

  async unsubscribe(channel: string): Promise<void> {
    const listener = this.#listeners.get(channel)
    this.#listeners.delete(channel)
    if (listener !== undefined) await this.#remove(channel, listener)
  }

  async #remove(channel: string, listener: MessageListener): Promise<void> {
    await (this.#sharded ? this.#client.sUnsubscribe : this.#client.unsubscribe)?.call(this.#client, channel, listener)
  }

  onReconnect(listener: () => void): () => void {
    return watchReconnect(this.#client, listener)
  }

  async close(): Promise<void> {
    if (this.#ownsClient) this.#client.destroy?.()
    else for (const channel of [...this.#listeners.keys()]) await this.unsubscribe(channel)
  }
}
