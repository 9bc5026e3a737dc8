import { FirebreakError } from '@firebreak/core'
import type { Redis, RedisArgument, RedisNode, RedisReply, RedisSubscriber, SendOptions } from '../redis.ts'
import type { RedisScript } from '../script/redis-script.ts'
import { ScriptRunner } from '../script/script-runner.ts'

type Listener = (...args: unknown[]) => void

/** What the adapter uses of an ioredis 5 or 6 client; both `Redis` and `Cluster` have it. */
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
  nodes?(role: 'master'): IoredisLike[]
  readonly status: string
}

/** Firebreak's narrow Redis over an ioredis client (version 5 or 6; alone, Sentinel or cluster). */
export function fromIoredis(client: IoredisLike): Redis {
  return new IoredisRedis(client)
}

/** The arguments after the command's name, as ioredis takes them. */
function toIoredis(args: readonly RedisArgument[]): (string | number | Buffer)[] {
  const rest = new Array<string | number | Buffer>(args.length - 1)
  for (let index = 1; index < args.length; index++) {
    const arg = args[index]!
    rest[index - 1] =
      typeof arg !== 'object' || Buffer.isBuffer(arg) ? arg : Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength)
  }
  return rest
}

function sendOn(
  client: IoredisLike,
  args: readonly [string, ...RedisArgument[]],
  options?: SendOptions,
): Promise<RedisReply> {
  const rest = toIoredis(args)
  const sent = options?.asBytes ? client.callBuffer(args[0], rest) : client.call(args[0], rest)
  return sent as Promise<RedisReply>
}

function addressOf(client: IoredisLike): string {
  const { host = 'localhost', port = 6379 } = client.options as { host?: string; port?: number }
  return `${host}:${port}`
}

/** Calls `listener` on every `ready` but the first of a client that was not ready yet. */
function watchReconnect(client: IoredisLike, listener: () => void): () => void {
  let wasReady = client.status === 'ready'
  const onReady = () => {
    if (wasReady) listener()
    wasReady = true
  }
  client.on('ready', onReady)
  return () => client.off('ready', onReady)
}

class IoredisRedis implements Redis {
  readonly topology
  readonly #client: IoredisLike
  readonly #scripts: ScriptRunner

  constructor(client: IoredisLike) {
    this.#client = client
    const { sentinels } = client.options as { sentinels?: unknown }
    this.topology =
      client.isCluster === true ? ('cluster' as const) : sentinels ? ('sentinel' as const) : ('standalone' as const)
    this.#scripts = new ScriptRunner((args, options) => this.send(args, options))
  }

  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply> {
    return sendOn(this.#client, args, options)
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
    const clients = this.#client.nodes?.('master') ?? [this.#client]
    return clients.map((client) => ({
      address: addressOf(client),
      send: (args: readonly [string, ...RedisArgument[]], options?: SendOptions) => sendOn(client, args, options),
    }))
  }

  async subscriber(): Promise<RedisSubscriber> {
    return new IoredisSubscriber(this.#client)
  }

  onReconnect(listener: () => void): () => void {
    return watchReconnect(this.#client, listener)
  }
}

class IoredisSubscriber implements RedisSubscriber {
  readonly #client: IoredisLike
  readonly #sharded: boolean
  readonly #listeners = new Map<string, (message: string) => void>()
  #isClosed = false

  constructor(source: IoredisLike) {
    this.#sharded = source.isCluster === true
    const duplicate = source.duplicate as unknown as (...args: unknown[]) => IoredisLike
    this.#client = this.#sharded
      ? duplicate.call(source, [], { shardedSubscribers: true })
      : duplicate.call(source, { lazyConnect: false, maxRetriesPerRequest: null })
    const onMessage = ((channel: string, message: string) =>
      this.#listeners.get(channel)?.(message)) as unknown as Listener
    this.#client.on(this.#sharded ? 'smessage' : 'message', onMessage)
    // The client reconnects by itself; without a listener its errors would be thrown.
    this.#client.on('error', () => {})
  }

  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    if (this.#isClosed)
      throw new FirebreakError('FB_SUBSCRIBER_CLOSED', `subscribe to ${channel}: this subscriber is closed`)
    this.#listeners.set(channel, listener)
    await (this.#sharded ? this.#client.ssubscribe(channel) : this.#client.subscribe(channel))
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel)
    await (this.#sharded ? this.#client.sunsubscribe(channel) : this.#client.unsubscribe(channel))
  }

  onReconnect(listener: () => void): () => void {
    return watchReconnect(this.#client, listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#client.disconnect()
  }
}
