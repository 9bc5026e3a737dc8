import type { EventEmitter } from 'node:events'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { Cluster as ClusterOfValkey, Redis as RedisOfValkey } from 'iovalkey'
import {
  createClient as createClient6,
  createCluster as createCluster6,
  createSentinel as createSentinel6,
} from 'redis'
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5'

/** One server, and what else a client may be told. */
export interface StandalonePlace {
  readonly kind: 'standalone'
  readonly port: number
  readonly database?: number
  /** Encrypted, to a server called `localhost` whose certificate this authority signed. */
  readonly ca?: Buffer
  /** Put before every key by the library itself; version 5 of node-redis knows none. */
  readonly keyPrefix?: string
  /** Whom it logs in as. */
  readonly login?: { readonly username: string; readonly password: string }
}

/** Servers as a client is told of them. */
export type Place =
  | StandalonePlace
  | {
      readonly kind: 'cluster'
      readonly addresses: readonly { host: string; port: number }[]
      readonly login?: { readonly username: string; readonly password: string }
    }
  | {
      readonly kind: 'sentinel'
      readonly name: string
      readonly sentinels: readonly { host: string; port: number }[]
    }

type Replies = Promise<unknown>

/** A client of any library, under one set of calls; replies are the library's own. */
export interface AnyClient {
  /** The client itself. */
  readonly raw: object
  call(args: readonly string[]): Replies
  get(key: string): Promise<string | null>
  getBuffer(key: string): Promise<Buffer | null>
  set(key: string, value: string): Replies
  /** The library's method for a command, with arguments as the library takes them. */
  reads: Readonly<Record<string, (key: string) => Replies>>
  pipeline(commands: readonly (readonly string[])[]): Replies
  multi(commands: readonly (readonly string[])[]): Replies
  select(database: number): Replies
  watch(key: string): Replies
  close(): void
}

export type Open = (place: Place) => Promise<AnyClient>

interface LikeIoredis {
  call(name: string, ...args: string[]): Replies
  get(key: string): Promise<string | null>
  getBuffer(key: string): Promise<Buffer | null>
  set(key: string, value: string): Replies
  pipeline(commands: string[][]): { exec(): Replies }
  multi(commands: string[][]): { exec(): Replies }
  select(database: number): Replies
  watch(key: string): Replies
  disconnect(): void
  [method: string]: (...args: never[]) => unknown
}

function fromIoredis(client: unknown): AnyClient {
  const redis = client as LikeIoredis
  // Without a listener ioredis prints each lost connection with its stack.
  ;(client as EventEmitter).on('error', () => {})
  const method =
    (name: string, ...args: (string | number)[]) =>
    (key: string) =>
      (redis[name] as (...words: unknown[]) => Replies).call(redis, key, ...args)
  const lowered = (commands: readonly (readonly string[])[]) =>
    commands.map(([name, ...args]) => [name!.toLowerCase(), ...args])
  return {
    raw: redis,
    call: ([name, ...args]) => redis.call(name!, ...args),
    get: (key) => redis.get(key),
    getBuffer: (key) => redis.getBuffer(key),
    set: (key, value) => redis.set(key, value),
    reads: {
      GET: method('get'),
      STRLEN: method('strlen'),
      GETRANGE: method('getrange', 0, 2),
      BITCOUNT: method('bitcount'),
      GETBIT: method('getbit', 1),
      HGETALL: method('hgetall'),
      HGET: method('hget', 'f'),
      HMGET: method('hmget', 'f', 'none'),
      LRANGE: method('lrange', 0, -1),
      LINDEX: method('lindex', 0),
      SMEMBERS: method('smembers'),
      SISMEMBER: method('sismember', 'a'),
      ZSCORE: method('zscore', 'a'),
      ZRANGE: method('zrange', 0, -1, 'WITHSCORES'),
      XRANGE: method('xrange', '-', '+'),
      XLEN: method('xlen'),
      PFCOUNT: method('pfcount'),
      GEOPOS: method('geopos', 'a', 'none'),
      GEODIST: method('geodist', 'a', 'b', 'km'),
    },
    pipeline: (commands) => redis.pipeline(lowered(commands)).exec(),
    multi: (commands) => redis.multi(lowered(commands)).exec(),
    select: (database) => redis.select(database),
    watch: (key) => redis.watch(key),
    close: () => redis.disconnect(),
  }
}

interface LikeMulti {
  addCommand(...args: unknown[]): LikeMulti
  exec(): Replies
  execAsPipeline(): Replies
}

interface LikeNodeRedis {
  sendCommand(...args: unknown[]): Replies
  get(key: string): Promise<string | null>
  set(key: string, value: string): Replies
  withTypeMapping(mapping: Record<number, unknown>): { get(key: string): Promise<Buffer | null> }
  multi(): LikeMulti
  select(database: number): Replies
  watch(key: string): Replies
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error', listener: () => void): unknown
}

async function fromNodeRedis(client: unknown, kind: Place['kind']): Promise<AnyClient> {
  const redis = client as LikeNodeRedis
  redis.on('error', () => {})
  await redis.connect()
  const method =
    (name: string, ...args: unknown[]) =>
    (key: string) =>
      (client as Record<string, (...words: unknown[]) => Replies>)[name]!(key, ...args)
  const call = (args: readonly string[]) => {
    if (kind === 'cluster') return redis.sendCommand(args[1], false, args)
    return kind === 'sentinel' ? redis.sendCommand(false, args) : redis.sendCommand(args)
  }
  const batch = (commands: readonly (readonly string[])[]) => {
    const multi = redis.multi()
    for (const args of commands) {
      if (kind === 'cluster') multi.addCommand(args[1], false, args)
      else if (kind === 'sentinel') multi.addCommand(false, args)
      else multi.addCommand(args)
    }
    return multi
  }
  return {
    raw: redis,
    call,
    get: (key) => redis.get(key),
    getBuffer(key) {
      const typeMapping = { 36: Buffer }
      // The sentinel of version 5 takes a mapping for itself and keeps it.
      if (kind !== 'sentinel') return redis.withTypeMapping(typeMapping).get(key)
      return redis.sendCommand(false, ['GET', key], { typeMapping }) as Promise<Buffer | null>
    },
    set: (key, value) => redis.set(key, value),
    reads: {
      GET: method('get'),
      STRLEN: method('strLen'),
      GETRANGE: method('getRange', 0, 2),
      BITCOUNT: method('bitCount'),
      GETBIT: method('getBit', 1),
      HGETALL: method('hGetAll'),
      HGET: method('hGet', 'f'),
      HMGET: method('hmGet', ['f', 'none']),
      LRANGE: method('lRange', 0, -1),
      LINDEX: method('lIndex', 0),
      SMEMBERS: method('sMembers'),
      SISMEMBER: method('sIsMember', 'a'),
      ZSCORE: method('zScore', 'a'),
      ZRANGE: method('zRangeWithScores', 0, -1),
      XRANGE: method('xRange', '-', '+'),
      XLEN: method('xLen'),
      PFCOUNT: method('pfCount'),
      GEOPOS: method('geoPos', ['a', 'none']),
      GEODIST: method('geoDist', 'a', 'b', 'km'),
    },
    pipeline: (commands) => batch(commands).execAsPipeline(),
    multi: (commands) => batch(commands).exec(),
    select: (database) => redis.select(database),
    watch: (key) => redis.watch(key),
    close: () => redis.destroy(),
  }
}

/** What the three factories of node-redis have in common, of either version. */
interface NodeRedisFactories {
  client(options: object): unknown
  cluster(options: object): unknown
  sentinel(options: object): unknown
}

function openNodeRedis({ client, cluster, sentinel }: NodeRedisFactories, RESP?: 2 | 3): Open {
  const resp = RESP === undefined ? {} : { RESP }
  return (place) => {
    switch (place.kind) {
      case 'standalone': {
        const { port, database = 0, ca, keyPrefix, login } = place
        const socket = ca === undefined ? { host: '127.0.0.1', port } : { host: 'localhost', port, tls: true, ca }
        const prefix = keyPrefix === undefined ? {} : { keyPrefix }
        return fromNodeRedis(client({ socket, database, ...login, ...prefix, ...resp }), place.kind)
      }
      case 'cluster': {
        const rootNodes = place.addresses.map((socket) => ({ socket }))
        const defaults = place.login === undefined ? {} : { defaults: place.login }
        return fromNodeRedis(cluster({ rootNodes, ...defaults, ...resp }), place.kind)
      }
      case 'sentinel':
        return fromNodeRedis(sentinel({ name: place.name, sentinelRootNodes: place.sentinels, ...resp }), place.kind)
    }
  }
}

function openIoredis(
  Redis: new (options: object) => unknown,
  Cluster: new (nodes: object[], options: object) => unknown,
  more: object = {},
): Open {
  return async (place) => {
    switch (place.kind) {
      case 'standalone': {
        const { port, database: db = 0, ca, keyPrefix, login } = place
        const tls = ca === undefined ? {} : { host: 'localhost', tls: { ca } }
        const prefix = keyPrefix === undefined ? {} : { keyPrefix }
        return fromIoredis(new Redis({ port, db, ...login, ...prefix, ...tls, ...more }))
      }
      case 'cluster':
        return fromIoredis(new Cluster([...place.addresses], { redisOptions: { ...place.login } }))
      case 'sentinel':
        return fromIoredis(new Redis({ sentinels: place.sentinels, name: place.name, ...more }))
    }
  }
}

type Constructor = new (...args: never[]) => unknown
const ioredis6 = [Redis6, Cluster6] as Constructor[] as [never, never]
const ioredis5 = [Redis5, Cluster5] as Constructor[] as [never, never]
const iovalkey = [RedisOfValkey, ClusterOfValkey] as Constructor[] as [never, never]
const nodeRedis6 = { client: createClient6, cluster: createCluster6, sentinel: createSentinel6 } as NodeRedisFactories
const nodeRedis5 = {
  client: createClient5,
  cluster: createCluster5,
  sentinel: createSentinel5,
} as unknown as NodeRedisFactories

/** Every library and version that `protect` takes. */
export const libraries: Readonly<Record<string, Open>> = {
  'ioredis 6': openIoredis(...ioredis6),
  'ioredis 5': openIoredis(...ioredis5),
  iovalkey: openIoredis(...iovalkey),
  'node-redis 6': openNodeRedis(nodeRedis6),
  'node-redis 5': openNodeRedis(nodeRedis5),
}

/** The same, with every protocol and shape of reply that they offer. */
export const dialects: Readonly<Record<string, Open>> = {
  'ioredis 6': openIoredis(...ioredis6),
  'ioredis 6 with RESP2': openIoredis(...ioredis6, { protocol: 2 }),
  'ioredis 6 with RESP3 replies': openIoredis(...ioredis6, { replyMapping: 'resp3' }),
  'ioredis 5': openIoredis(...ioredis5),
  iovalkey: openIoredis(...iovalkey),
  'node-redis 6': openNodeRedis(nodeRedis6),
  'node-redis 6 with RESP2': openNodeRedis(nodeRedis6, 2),
  'node-redis 5': openNodeRedis(nodeRedis5),
  'node-redis 5 with RESP3': openNodeRedis(nodeRedis5, 3),
}
