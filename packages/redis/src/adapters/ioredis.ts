import { FirebreakError } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import { hasShardedChannels } from '../publish-command.ts'
import type { Redis, RedisArgument, RedisNode, RedisReply, RedisSubscriber, RunOptions, SendOptions } from '../redis.ts'
import type { RedisScript } from '../script/redis-script.ts'
import { ScriptRunner } from '../script/script-runner.ts'
import { ClusterSubscriber } from './cluster-subscriber.ts'
import { sentAtMostOnce } from './ioredis-at-most-once.ts'
import { ScriptCommand, sendScript } from './ioredis-script-command.ts'
import { isKeyless } from './keyless-commands.ts'

type Listener = (...args: unknown[]) => void

/** The part of an ioredis 5 or 6 client that the adapter uses; both `Redis` and `Cluster` have it. */
export interface IoredisLike {
  readonly isCluster?: boolean
  readonly options: object
  call(command: string, args: (string | number | Buffer)[]): Promise<unknown>
  callBuffer(command: string, args: (string | number | Buffer)[]): Promise<unknown>
  duplicate(...args: never[]): IoredisLike
  on(event: string, listener: Listener): unknown
  off(event: string, listener: Listener): unknown
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ssubscribe(channel: string): Promise<unknown>
  sunsubscribe(channel: string): Promise<unknown>
  disconnect(): void
  nodes?(role: 'master' | 'all'): IoredisLike[]
  /** Cluster: the addresses of each slot's nodes, the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[]
  readonly status: string
}

/** Wraps an ioredis client (version 5 or 6; standalone, Sentinel or cluster) in Firebreak's narrow Redis interface. */
export function fromIoredis(client: IoredisLike): Redis {
  return new IoredisRedis(client)
}

type IoredisArgument = string | number | Buffer

function toIoredis(arg: RedisArgument): IoredisArgument {
  return typeof arg !== 'object' || Buffer.isBuffer(arg) ? arg : Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength)
}

function callOn(
  client: IoredisLike,
  command: string,
  args: IoredisArgument[],
  options: SendOptions | undefined,
): Promise<RedisReply> {
  // iovalkey adds key prefixes only to commands whose names are in lower case.
  const name = command.toLowerCase()
  if (readsNumbersAsText(client)) {
    return client.callBuffer(name, args).then((reply) => withNumbers(reply as RedisReply, options?.asBytes === true))
  }
  const sent = options?.asBytes ? client.callBuffer(name, args) : client.call(name, args)
  return sent as Promise<RedisReply>
}

/** True with ioredis' option `stringNumbers`. */
function readsNumbersAsText({ options }: IoredisLike): boolean {
  const { stringNumbers, redisOptions } = options as { stringNumbers?: boolean; redisOptions?: IoredisLike['options'] }
  return stringNumbers ?? (redisOptions as { stringNumbers?: boolean } | undefined)?.stringNumbers ?? false
}

/** Only numbers are strings in such a reply to `callBuffer`: all texts are bytes. */
function withNumbers(reply: RedisReply, asBytes: boolean): RedisReply {
  if (typeof reply === 'string') return Number(reply)
  if (Buffer.isBuffer(reply)) return asBytes ? reply : reply.toString()
  return Array.isArray(reply) ? reply.map((part) => withNumbers(part, asBytes)) : reply
}

function sendOn(
  client: IoredisLike,
  args: readonly [string, ...RedisArgument[]],
  options?: SendOptions,
): Promise<RedisReply> {
  const rest: IoredisArgument[] = []
  for (let index = 1; index < args.length; index++) rest.push(toIoredis(args[index]!))
  return callOn(client, args[0], rest, options)
}

function addressOf(client: IoredisLike): string {
  const { host = 'localhost', port = 6379 } = client.options as { host?: string; port?: number }
  return `${host}:${port}`
}

/** Calls `listener` on every `ready`, except the first one of a client that was not ready yet. */
function watchReady(client: IoredisLike, listener: () => void): () => void {
  let wasReady = client.status === 'ready'
  const onReady = () => {
    if (wasReady) listener()
    wasReady = true
  }
  client.on('ready', onReady)
  return () => client.off('ready', onReady)
}

/** A cluster has recovered once any of its nodes has: it replaces a lost connection with a new node object. */
function watchNodes(cluster: IoredisLike, listener: () => void): () => void {
  const watched = new Map<IoredisLike, () => void>()
  const onAdded = (node: IoredisLike) => {
    const onReady = () => listener()
    node.on('ready', onReady)
    watched.set(node, () => node.off('ready', onReady))
  }
  const onRemoved = (node: IoredisLike) => {
    watched.get(node)?.()
    watched.delete(node)
  }
  const events = { '+node': onAdded as unknown as Listener, '-node': onRemoved as unknown as Listener }
  for (const node of cluster.nodes!('all')) watched.set(node, watchReady(node, listener))
  for (const [event, onEvent] of Object.entries(events)) cluster.on(event, onEvent)
  return () => {
    for (const [event, onEvent] of Object.entries(events)) cluster.off(event, onEvent)
    for (const stop of watched.values()) stop()
  }
}

/** True if none of the client's options changes a command before it is sent, or its reply. */
function sendsPlainly(client: IoredisLike): boolean {
  const options = client.options as { keyPrefix?: string; commandTimeout?: number; showFriendlyErrorStack?: boolean }
  if (readsNumbersAsText(client)) return false
  return !options.keyPrefix && options.commandTimeout === undefined && !options.showFriendlyErrorStack
}

class IoredisRedis implements Redis {
  readonly topology
  readonly #client: IoredisLike
  readonly #scripts: ScriptRunner

  constructor(client: IoredisLike) {
    this.#client = client
    const once = sentAtMostOnce(client)
    const { sentinels } = client.options as { sentinels?: unknown }
    this.topology =
      client.isCluster === true ? ('cluster' as const) : sentinels ? ('sentinel' as const) : ('standalone' as const)
    const isPlain = this.topology !== 'cluster' && sendsPlainly(client)
    this.#scripts = new ScriptRunner((command, script, keys, args, options) => {
      if (isPlain && options?.atMostOnce && options.asBytes) {
        return sendScript(client, new ScriptCommand(command, script, keys, args))
      }
      const rest: IoredisArgument[] = [script, keys.length]
      for (const key of keys) rest.push(toIoredis(key))
      for (const arg of args) rest.push(toIoredis(arg))
      return callOn(options?.atMostOnce ? once : client, command, rest, options)
    })
  }

  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply> {
    const key = options?.key
    if (key !== undefined && this.topology === 'cluster' && isKeyless(args[0])) {
      const address = this.#client.slots?.[keySlot(key)]?.[0]
      const node = this.#client.nodes!('master').find((candidate) => addressOf(candidate) === address)
      if (node !== undefined) return sendOn(node, args, options)
    }
    return sendOn(this.#client, args, options)
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
    const clients = this.#client.nodes?.('master') ?? [this.#client]
    return clients.map((client) => ({
      address: addressOf(client),
      send: (args: readonly [string, ...RedisArgument[]], options?: SendOptions) => sendOn(client, args, options),
    }))
  }

  async subscriber(): Promise<RedisSubscriber> {
    const client = this.#client
    if (this.topology !== 'cluster') return new IoredisSubscriber(client, false)
    return new ClusterSubscriber({
      homeOf: (channel) => client.slots?.[keySlot(channel)]?.[0],
      subscriberOf: async (address) => {
        const node = client.nodes!('all').find((candidate) => addressOf(candidate) === address)
        if (node === undefined)
          throw new FirebreakError('FB_SLOT_UNSERVED', `the cluster has no node ${address} any more`)
        // Asked of a cluster that is connected by now.
        return new IoredisSubscriber(node, await hasShardedChannels(this))
      },
    })
  }

  onReconnect(listener: () => void): () => void {
    return this.topology === 'cluster' ? watchNodes(this.#client, listener) : watchReady(this.#client, listener)
  }
}

/** One connection in subscriber mode, to the server or to one cluster node. */
class IoredisSubscriber implements RedisSubscriber {
  readonly #client: IoredisLike
  readonly #isSharded: boolean
  readonly #channels = new Map<string, (message: string) => void>()
  readonly #listeners = new Set<() => void>()
  #isClosed = false

  constructor(source: IoredisLike, isSharded: boolean) {
    this.#isSharded = isSharded
    const duplicate = source.duplicate as unknown as (options: object) => IoredisLike
    this.#client = duplicate.call(source, {
      lazyConnect: false,
      maxRetriesPerRequest: null,
      enableOfflineQueue: true,
      // A cluster's node objects do not reconnect by themselves; this connection does.
      retryStrategy: (attempt: number) => Math.min(attempt * 20, 500),
      // Subscriptions are renewed below, where we can await their confirmation.
      autoResubscribe: false,
    })
    const onMessage = ((channel: string, message: string) =>
      this.#channels.get(channel)?.(message)) as unknown as Listener
    this.#client.on(isSharded ? 'smessage' : 'message', onMessage)
    // The client reconnects by itself; without a listener, its errors would be thrown.
    this.#client.on('error', () => {})
    watchReady(this.#client, () => void this.#restore())
  }

  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    if (this.#isClosed)
      throw new FirebreakError('FB_SUBSCRIBER_CLOSED', `subscribe to ${channel}: this subscriber is closed`)
    this.#channels.set(channel, listener)
    await this.#send(channel)
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#channels.delete(channel)
    await (this.#isSharded ? this.#client.sunsubscribe(channel) : this.#client.unsubscribe(channel))
  }

  onReconnect(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#client.disconnect()
  }

  #send(channel: string): Promise<unknown> {
    return this.#isSharded ? this.#client.ssubscribe(channel) : this.#client.subscribe(channel)
  }

  async #restore(): Promise<void> {
    try {
      await Promise.all([...this.#channels.keys()].map((channel) => this.#send(channel)))
    } catch {
      // Lost again, or the slot has moved: the next connection or the next owner reports it.
      return
    }
    for (const listener of this.#listeners) listener()
  }
}
