import type { RedisScript } from './script/redis-script.ts'

/** One argument of a command; numbers are sent in decimal, bytes unchanged. */
export type RedisArgument = string | number | Uint8Array

/** A reply in RESP2 form; bulk strings are text, or bytes if bytes were requested. Errors reject instead. */
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
   * The key that picks the cluster node, if it is not the first argument after the command's name.
   * @default the first argument
   */
  readonly key?: string | Uint8Array
}

/** How one script is run. */
export interface RunOptions extends SendOptions {
  /**
   * If the connection is lost before the reply arrives, reject the call: it may or may not have run. Without this,
   * ioredis resends it after reconnecting.
   * @default false
   */
  readonly atMostOnce?: boolean
}

/**
 * All that Firebreak's packages need from a Redis client: commands, scripts and messages. Adapters implement it for
 * ioredis and node-redis, standalone, with Sentinel and on a cluster; one conformance suite runs against each.
 */
export interface Redis {
  readonly topology: RedisTopology
  /** Sends one command. Commands sent in one turn of the event loop share a write. */
  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply>
  /** Runs a script by its digest, loading it if the server does not have it. All keys must be in one slot. */
  run(
    script: RedisScript,
    keys: readonly (string | Uint8Array)[],
    args: readonly RedisArgument[],
    options?: RunOptions,
  ): Promise<RedisReply>
  /** A connection to each master, for commands that address a node rather than a key. */
  masters(): Promise<RedisNode[]>
  /** A subscriber on its own connections. Closing it does not affect this Redis. */
  subscriber(): Promise<RedisSubscriber>
  /** Calls back each time a lost connection is ready again; returns a function that unsubscribes. */
  onReconnect(listener: () => void): () => void
}

/** One master of a cluster, or the only server. */
export interface RedisNode {
  /** `host:port` as the client knows it. */
  readonly address: string
  send(args: readonly [string, ...RedisArgument[]], options?: SendOptions): Promise<RedisReply>
}

/**
 * Pub/sub on separate connections. On a cluster the channels are sharded where the servers can do that, so a message stays
 * on one node; `publishCommand` tells which command reaches them.
 */
export interface RedisSubscriber {
  /** Resolves once the server has confirmed the subscription; subscriptions are renewed after a reconnect. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Calls back after a reconnect, once all subscriptions are restored. Messages sent in between are lost. */
  onReconnect(listener: () => void): () => void
  close(): Promise<void>
}

/** The first word of a server error (`NOSCRIPT`, `MOVED`, `WRONGTYPE` …), or undefined if it is not a server error. */
export function replyErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const word = error.message.split(' ', 1)[0]!
  return /^[A-Z]+$/.test(word) ? word : undefined
}
