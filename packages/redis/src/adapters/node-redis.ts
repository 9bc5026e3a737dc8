import { FirebreakError, systemTimers } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { hasShardedChannels } from '../publish-command.ts'
import {
  type Redis,
  type RedisArgument,
  type RedisNode,
  type RedisReply,
  type RedisSubscriber,
  type RedisTopology,
  type RunOptions,
  replyErrorCode,
  type SendOptions,
} from '../redis.ts'
import type { RedisScript } from '../script/redis-script.ts'
import { ScriptRunner } from '../script/script-runner.ts'
import { ClusterSubscriber } from './cluster-subscriber.ts'
import { isKeyless } from './keyless-commands.ts'

type MessageListener = (message: string) => void

/**
 * The part of a node-redis 5 or 6 client, cluster or sentinel that the adapter uses; the three differ in their
 * arguments.
 */
export interface NodeRedisLike {
  sendCommand(...args: never[]): Promise<unknown>
  withTypeMapping(mapping: Record<number, unknown>): NodeRedisLike
  duplicate?(...args: never[]): NodeRedisLike
  connect(): Promise<unknown>
  destroy?(): void
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  subscribe?(...args: never[]): Promise<unknown>
  unsubscribe?(...args: never[]): Promise<unknown>
  sSubscribe?(...args: never[]): Promise<unknown>
  sUnsubscribe?(...args: never[]): Promise<unknown>
  readonly isReady?: boolean
  /** Cluster: its masters, each with a client created on first use. */
  readonly masters?: readonly NodeRedisMaster[]
  /** Cluster: the master of each slot. */
  readonly slots?: readonly ({ readonly master: NodeRedisMaster } | undefined)[]
  nodeClient?(node: NodeRedisMaster): Promise<NodeRedisLike> | NodeRedisLike
  /** Sentinel only: lends out a client. */
  acquire?(): Promise<unknown>
}

interface NodeRedisMaster {
  readonly address: string
}

const blobString = 36
const bytesOptions = { typeMapping: { [blobString]: Buffer } }
/** Instead of the client's own mapping, by which numbers may be text and text may be bytes. */
const textOptions = { typeMapping: {} }

/** Wraps a node-redis client (version 5 or 6; client, cluster or sentinel) in Firebreak's narrow Redis interface. */
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

function watchEvents(client: NodeRedisLike, events: readonly string[], listener: () => void): () => void {
  for (const event of events) client.on(event, listener)
  return () => {
    for (const event of events) client.off(event, listener)
  }
}

/** Calls `listener` on every `ready`, except the first one of a client that was not ready yet. */
function watchReady(client: NodeRedisLike, listener: () => void): () => void {
  let wasReady = client.isReady === true
  return watchEvents(client, ['ready'], () => {
    if (wasReady) listener()
    wasReady = true
  })
}

/** Subscribes to connection trouble; returns a function that unsubscribes. */
type TroubleSource = (onTrouble: () => void) => () => void

/**
 * A sentinel or cluster client reports trouble but not recovery. After an error or a topology change, we repeat `probe`
 * until it succeeds; that is when the connection is back.
 */
function watchTrouble(source: TroubleSource, probe: () => Promise<unknown>, listener: () => void): () => void {
  let isProbing = false
  let hasEnded = false
  const onTrouble = async () => {
    if (isProbing) return
    isProbing = true
    for (let pauseMs = 10; !hasEnded; pauseMs = Math.min(pauseMs * 2, 500)) {
      try {
        await probe()
        listener()
        break
      } catch {
        await new Promise<void>((resolve) => void systemTimers.setTimeout(resolve, pauseMs))
      }
    }
    isProbing = false
  }
  const stop = source(() => void onTrouble())
  return () => {
    hasEnded = true
    stop()
  }
}

class NodeRedisRedis implements Redis {
  readonly topology: RedisTopology
  readonly #client: NodeRedisLike
  readonly #scripts: ScriptRunner
  /** Called when a command failed without an answer from the server. */
  readonly #onTrouble = new Set<() => void>()

  constructor(client: NodeRedisLike) {
    this.#client = client
    this.topology = topologyOf(client)
    this.#scripts = new ScriptRunner((command, script, keys, args, options) =>
      // The first key chooses the node of a cluster.
      this.send(
        [command, script, keys.length, ...keys, ...args],
        keys.length > 0 ? { ...options, key: keys[0]! } : options,
      ),
    )
  }

  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply> {
    const encoded = toNodeRedis(args)
    const sendCommand = this.#client.sendCommand as unknown as (...args: unknown[]) => Promise<RedisReply>
    const commandOptions = options?.asBytes ? bytesOptions : textOptions
    if (this.topology === 'cluster') {
      if (options?.key !== undefined && isKeyless(args[0])) return this.#sendToOwner(options.key, args, options)
      const key = options?.key === undefined ? encoded[1] : toNodeRedis([options.key])[0]
      return sendCommand.call(this.#client, key, false, encoded, commandOptions)
    }
    if (this.topology === 'sentinel') {
      const sent = sendCommand.call(this.#client, false, encoded, commandOptions)
      sent.catch((error) => {
        if (replyErrorCode(error) === undefined) for (const onTrouble of this.#onTrouble) onTrouble()
      })
      return sent
    }
    return sendCommand.call(this.#client, encoded, commandOptions)
  }

  run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options?: RunOptions,
  ): Promise<RedisReply> {
    return this.#scripts.run(script, keys, args, options)
  }

  async masters(): Promise<RedisNode[]> {
    if (this.topology !== 'cluster') return [{ address: 'server', send: (args, options) => this.send(args, options) }]
    return (this.#client.masters ?? []).map((master) => ({
      address: master.address,
      send: (args, options) => this.#sendToMaster(master, args, options),
    }))
  }

  #sendToOwner(
    key: string | Uint8Array,
    args: readonly [string, ...RedisArgument[]],
    options: SendOptions,
  ): Promise<RedisReply> {
    const master = this.#client.slots?.[keySlot(key)]?.master
    if (master !== undefined) return this.#sendToMaster(master, args, options)
    return Promise.reject(new FirebreakError('FB_SLOT_UNSERVED', `no node of the cluster serves the key of ${args[0]}`))
  }

  async #sendToMaster(
    master: NodeRedisMaster,
    args: readonly [string, ...RedisArgument[]],
    options?: SendOptions,
  ): Promise<RedisReply> {
    const node = await this.#client.nodeClient!(master)
    const sendCommand = node.sendCommand as unknown as (...args: unknown[]) => Promise<RedisReply>
    return sendCommand.call(node, toNodeRedis(args), options?.asBytes ? bytesOptions : textOptions)
  }

  async subscriber(): Promise<RedisSubscriber> {
    const client = this.#client
    if (this.topology !== 'cluster') return openSubscriber(client, 'channel')
    return new ClusterSubscriber({
      homeOf: (channel) => client.slots?.[keySlot(channel)]?.master.address,
      subscriberOf: async (address) => {
        const master = client.masters?.find((candidate) => candidate.address === address)
        if (master === undefined)
          throw new FirebreakError('FB_SLOT_UNSERVED', `the cluster has no master ${address} any more`)
        const kind = (await hasShardedChannels(this)) ? 'sharded' : 'channel'
        return openSubscriber(await client.nodeClient!(master), kind)
      },
    })
  }

  onReconnect(listener: () => void): () => void {
    if (this.topology === 'standalone') return watchReady(this.#client, listener)
    if (this.topology === 'cluster') {
      const source: TroubleSource = (onTrouble) =>
        watchEvents(this.#client, ['node-reconnecting', 'node-ready'], onTrouble)
      const pingAll = async () => Promise.all((await this.masters()).map((master) => master.send(['PING'])))
      return watchTrouble(source, pingAll, listener)
    }
    // A sentinel client hides its connection errors: version 5 fails the command, version 6 silently retries it. Only a
    // topology change is reported.
    const source: TroubleSource = (onTrouble) => {
      const stop = watchEvents(this.#client, sentinelEvents, onTrouble)
      this.#onTrouble.add(onTrouble)
      return () => {
        stop()
        this.#onTrouble.delete(onTrouble)
      }
    }
    return watchTrouble(source, () => this.send(['PING']), listener)
  }
}

const sentinelEvents = ['error', 'topology-change']

/**
 * Opens a subscriber on a duplicate of the client. A version 5 sentinel cannot be duplicated, but subscribes on a
 * separate connection.
 */
async function openSubscriber(source: NodeRedisLike, kind: 'channel' | 'sharded'): Promise<RedisSubscriber> {
  if (source.subscribe === undefined) {
    throw new FirebreakError(
      'FB_SUBSCRIBE_UNSUPPORTED',
      'this node-redis client has no subscribe; pass a client, cluster or sentinel',
    )
  }
  if (source.duplicate === undefined) return new NodeRedisSubscriber(source, kind, false)
  const client = source.duplicate()
  client.on('error', () => {})
  await client.connect()
  return new NodeRedisSubscriber(client, kind, true)
}

/** One connection in subscriber mode, to the server, to the master behind Sentinels, or to one cluster node. */
class NodeRedisSubscriber implements RedisSubscriber {
  readonly #client: NodeRedisLike
  readonly #kind: 'channel' | 'sharded'
  readonly #channels = new Map<string, MessageListener>()
  readonly #ownsClient: boolean
  #probes = 0
  #isClosed = false

  constructor(client: NodeRedisLike, kind: 'channel' | 'sharded', ownsClient: boolean) {
    this.#client = client
    this.#kind = kind
    this.#ownsClient = ownsClient
  }

  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    if (this.#isClosed)
      throw new FirebreakError('FB_SUBSCRIBER_CLOSED', `subscribe to ${channel}: this subscriber is closed`)
    const wrapped: MessageListener = (message: string) => listener(message)
    const before = this.#channels.get(channel)
    this.#channels.set(channel, wrapped)
    await this.#add(channel, wrapped)
    if (before !== undefined) await this.#remove(channel, before)
  }

  async unsubscribe(channel: string): Promise<void> {
    const listener = this.#channels.get(channel)
    this.#channels.delete(channel)
    if (listener !== undefined) await this.#remove(channel, listener)
  }

  onReconnect(listener: () => void): () => void {
    // A standalone client has renewed its subscriptions by the time it is ready. A sentinel reports nothing about its
    // subscribing connection, but a subscription confirmed after the trouble comes after those that it renewed.
    if (topologyOf(this.#client) === 'standalone') return watchReady(this.#client, listener)
    const source: TroubleSource = (onTrouble) => watchEvents(this.#client, sentinelEvents, onTrouble)
    return watchTrouble(source, () => this.#probe(), listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#ownsClient) this.#client.destroy?.()
    // One at a time: the sentinel closes its connection with the last channel.
    else for (const channel of [...this.#channels.keys()]) await this.unsubscribe(channel).catch(() => {})
  }

  async #probe(): Promise<void> {
    const channel = `firebreak_probe_${++this.#probes}`
    const ignore: MessageListener = () => {}
    await this.#add(channel, ignore)
    await this.#remove(channel, ignore)
  }

  async #add(channel: string, listener: MessageListener): Promise<void> {
    await this.#call(this.#kind === 'sharded' ? this.#client.sSubscribe : this.#client.subscribe, channel, listener)
  }

  async #remove(channel: string, listener: MessageListener): Promise<void> {
    await this.#call(this.#kind === 'sharded' ? this.#client.sUnsubscribe : this.#client.unsubscribe, channel, listener)
  }

  async #call(method: unknown, channel: string, listener: MessageListener): Promise<void> {
    await (method as (channel: string, listener: MessageListener) => Promise<unknown>).call(
      this.#client,
      channel,
      listener,
    )
  }
}
