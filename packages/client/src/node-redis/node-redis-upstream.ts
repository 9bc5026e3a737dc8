import type { ConnectionOptions } from 'node:tls'
import { type SocketPlace, socketPipe } from '@firebreak/core/node'
import type { OpenPipe } from '@firebreak/core/resp'
import type { Credentials, Upstream } from '@firebreak/shield'
import { type ClientIdentity, placeOfItsOwn, placeOfMany } from '../clients/client-identity.ts'
import { rediscover } from './connections.ts'
import {
  isNodeRedisCluster,
  isNodeRedisConnection,
  isNodeRedisPool,
  isNodeRedisSentinel,
  type NodeRedisClient,
  type NodeRedisClientOptions,
  type NodeRedisCluster,
  type NodeRedisConnection,
  type NodeRedisPool,
  type NodeRedisSocketOptions,
} from './node-redis-client.ts'

/** Where the keys of a node-redis client live, and plain connections to them for the shield. */
export class NodeRedisUpstream implements Upstream {
  readonly isCluster: boolean
  readonly #client: NodeRedisClient
  /** Only the connections of a sentinel or pool show how it reaches its servers. */
  #nodeOptions: NodeRedisClientOptions | undefined
  #provided: Credentials = {}

  constructor(client: NodeRedisClient) {
    this.#client = client
    this.isCluster = isNodeRedisCluster(client)
    this.#askProvider()
  }

  /** Called for each connection of the client. */
  saw({ options }: NodeRedisConnection): void {
    this.#nodeOptions ??= options
    this.#askProvider()
  }

  nodeOf(slot: number): string | undefined {
    const client = this.#client
    if (isNodeRedisCluster(client)) return client.slots[slot]?.master.address
    if (isNodeRedisSentinel(client)) {
      const node = this.#nodeOptions === undefined ? undefined : client.getMasterNode()
      return node && `${node.host}:${node.port}`
    }
    const options = isNodeRedisPool(client) ? this.#nodeOptions : (client.options ?? {})
    return options && addressOfSocket(options.socket)
  }

  connect(node: string): OpenPipe {
    const { socket = {} } = this.#options()
    const { path: _path, host: _host, port: _port, ...tls } = socket
    return socketPipe({
      place: this.#placeOf(node, socket),
      tls: socket.tls === true ? (tls as ConnectionOptions) : undefined,
      keepsProcess: false,
    })
  }

  credentials(): Credentials {
    const { username, password } = this.#options()
    this.#askProvider()
    if (!username && !password) return this.#provided
    return { ...(username && { username }), ...(password && { password }) }
  }

  refresh(): void {
    if (isNodeRedisCluster(this.#client)) void rediscover(this.#client)
  }

  #options(): NodeRedisClientOptions {
    const client = this.#client
    if (isNodeRedisCluster(client)) return this.#nodeOptions ?? client._options.defaults ?? {}
    return (isNodeRedisConnection(client) ? client.options : this.#nodeOptions) ?? {}
  }

  #placeOf(node: string, { path, family }: NodeRedisSocketOptions): SocketPlace {
    if (path !== undefined && node === path) return { path }
    const address = isNodeRedisCluster(this.#client) ? mappedAddress(this.#client, node) : addressOf(node)
    return { ...address, ...(family && { family }) }
  }

  /** Fetches the provider's credentials, so that they are ready when a connection needs them. */
  #askProvider(): void {
    const { credentialsProvider } = this.#options()
    if (credentialsProvider?.credentials === undefined) return
    // The application's own code: it may throw or return anything.
    new Promise<Credentials | undefined>((resolve) => resolve(credentialsProvider.credentials?.())).then(
      ({ username, password } = {}) => {
        this.#provided = { ...(username && { username }), ...(password && { password }) }
      },
      () => {},
    )
  }
}

/** The identity that a client's connection reads as. */
export function nodeRedisIdentity(client: NodeRedisClient, { options = {} }: NodeRedisConnection): ClientIdentity {
  const { username, password, credentialsProvider, socket = {} } = options
  const place = placeOf(client, socket)
  // node-redis turns every name and password into a provider.
  return { place, username, password, provider: username || password ? undefined : credentialsProvider }
}

function placeOf(client: NodeRedisClient, socket: NodeRedisSocketOptions): string {
  if (isNodeRedisCluster(client)) return placeOfMany(rootAddresses(client))
  // It does not reveal which group it is for.
  return isNodeRedisSentinel(client) ? placeOfItsOwn(client._self) : addressOfSocket(socket)
}

function rootAddresses(client: NodeRedisCluster): string[] {
  return (client._options.rootNodes ?? []).map(({ url, socket }) => {
    if (url !== undefined) return url.replace(/^rediss?:\/\//, '').replace(/^.*@/, '')
    return addressOfSocket(socket)
  })
}

/** A name for the Redis behind a client, the same in every process with the same configuration. */
export function nodeRedisClusterId(client: NodeRedisClient): string {
  if (isNodeRedisSentinel(client)) return 'sentinel'
  if (isNodeRedisPool(client)) return poolClusterId(client)
  if (!isNodeRedisCluster(client)) return addressOfSocket(client.options?.socket)
  return rootAddresses(client).sort()[0] ?? 'cluster'
}

/** A pool has no visible options but is named after them, unless it was created from a URL or without options. */
function poolClusterId({ identity }: NodeRedisPool): string {
  const [, host, port] = /^(.+):(\d+|unknown)\//.exec(identity?.id ?? '') ?? []
  if (host === undefined || (host === 'unknown' && port === 'unknown')) return 'pool'
  return addressOfSocket({
    ...(host !== 'unknown' && { host }),
    ...(port !== 'unknown' && { port: Number(port) }),
  })
}

function addressOfSocket({ path, host = 'localhost', port = 6379 }: NodeRedisSocketOptions = {}): string {
  return path ?? `${host}:${port}`
}

/** A cluster node's address as this client sees it, which may differ from the cluster's own. */
function mappedAddress(client: NodeRedisCluster, node: string): { host: string; port: number } {
  const { nodeAddressMap: map } = client._options
  const mapped: unknown = typeof map === 'function' ? map(node) : (map as Record<string, unknown> | undefined)?.[node]
  return (mapped as { host: string; port: number } | undefined) ?? addressOf(node)
}

function addressOf(node: string): { host: string; port: number } {
  const at = node.lastIndexOf(':')
  return { host: node.slice(0, at), port: Number(node.slice(at + 1)) }
}
