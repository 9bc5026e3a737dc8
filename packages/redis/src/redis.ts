import type { RedisScript } from './script/redis-script.ts'

/** One argument of a command; numbers are written in decimal, bytes as they are. */
export type RedisArgument = string | number | Uint8Array

/** A reply in RESP2's shapes; bulk strings are text, or bytes where bytes were asked for. Errors reject instead. */
export type RedisReply =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | RedisReply[]
  | { [field: string]: RedisReply }

/** How the servers behind a connection are arranged. */
export type RedisTopology = 'standalone' | 'cluster' | 'sentinel'

/** How one command is sent. */
export interface SendOptions {
  /**
   * Bulk strings come back as bytes.
   * @default false
   */
  readonly asBytes?: boolean
  /**
   * The key that chooses the cluster node, where it is not the first argument after the command's name.
   * @default the first argument
   */
  readonly key?: string | Uint8Array
}

/** How one script is run. */
export interface RunOptions extends SendOptions {
  /**
   * Where the connection is lost before the reply came, the call is rejected: nobody knows whether it ran. Without
   * this, ioredis sends it once more after a reconnect.
   * @default false
   */
  readonly atMostOnce?: boolean
}

/**
 * All that Firebreak's rooms need of a Redis client: a command, a script, a message. Adapters carry it to ioredis and
 * node-redis, alone, with Sentinel and on a cluster; one conformance suite runs on each.
 */
export interface Redis {
  readonly topology: RedisTopology
  /** Sends one command. Commands sent in one turn of the event loop share a write. */
  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply>
  /** Runs a script by its digest, loading it where the server does not know it. All keys share one slot. */
  run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options?: RunOptions,
  ): Promise<RedisReply>
  /** A connection to each master, for commands that are about a node and not a key. */
  masters(): Promise<RedisNode[]>
  /** A subscriber on connections of its own. Closing it leaves this Redis as it is. */
  subscriber(): Promise<RedisSubscriber>
  /** Calls back whenever a connection is ready again after it was lost; returns a function that ends this. */
  onReconnect(listener: () => void): () => void
}

/** One master of a cluster, or the only server. */
export interface RedisNode {
  /** `host:port` as the client knows it. */
  readonly address: string
  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply>
}

/** Pub/sub on connections of its own; on a cluster channels are sharded, so a message travels on one node only. */
export interface RedisSubscriber {
  /** Resolves once the server has confirmed the subscription; subscriptions are renewed after a reconnect. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Calls back after a reconnect, when all subscriptions stand again: messages in between are lost. */
  onReconnect(listener: () => void): () => void
  close(): Promise<void>
}

/** The first word of a server error (`NOSCRIPT`, `MOVED`, `WRONGTYPE` …), or undefined where it is not one. */
export function replyErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const word = error.message.split(' ', 1)[0]!
  return /^[A-Z]+$/.test(word) ? word : undefined
}
