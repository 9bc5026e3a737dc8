import type { ConnectionOptions } from 'node:tls'
import { type SocketPlace, socketPipe } from '@firebreak/core/node'
import type { OpenPipe } from '@firebreak/core/resp'
import type { Credentials, Upstream } from '@firebreak/shield'
import type { ClientIdentity } from '../clients/client-identity.ts'
import {
  isNodeRedisCluster,
  isNodeRedisSentinel,
  type NodeRedisClient,
  type NodeRedisClientOptions,
  type NodeRedisCluster,
  type NodeRedisConnection,
  type NodeRedisSocketOptions,
} from './node-redis-client.ts'

/** Where the keys of a node-redis client live, and plain connections to there for the shield. */
export class NodeRedisUpstream implements Upstream {
  readonly isCluster: boolean
  readonly #client: NodeRedisClient
  /** A sentinel tells how it reaches its servers only by the connections that it made. */
  #nodeOptions: NodeRedisClientOptions | undefined
  #provided: Credentials = {}

  constructor(client: NodeRedisClient) {
    this.#client = client
    this.isCluster = isNodeRedisCluster(client)
    this.#askProvider()
  }

  /** A connection of the client was seen. */
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
    const { path, host = 'localhost', port = 6379 } = client.options?.socket ?? {}
    return path ?? `${host}:${port}`
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
    const client = this.#client
    if (!isNodeRedisCluster(client)) return
    const known = client.masters.find((node) => node.client !== undefined)?.client
    if (known !== undefined) client._slots.rediscover(known).catch(() => {})
  }

  #options(): NodeRedisClientOptions {
    const client = this.#client
    if (isNodeRedisCluster(client)) return this.#nodeOptions ?? client._options.defaults ?? {}
    return (isNodeRedisSentinel(client) ? this.#nodeOptions : client.options) ?? {}
  }

  #placeOf(node: string, { path, family }: NodeRedisSocketOptions): SocketPlace {
    if (path !== undefined && node === path) return { path }
    const address = isNodeRedisCluster(this.#client) ? mappedAddress(this.#client, node) : addressOf(node)
    return { ...address, ...(family && { family }) }
  }

  /** Asks for the credentials that a provider has, for when a connection needs them. */
  #askProvider(): void {
    this.#options()
      .credentialsProvider?.credentials?.()
      .then(
        ({ username, password }) => {
          this.#provided = { ...(username && { username }), ...(password && { password }) }
        },
        () => {},
      )
  }
}

/** As whom a connection reads; `isAlone`: it belongs to no cluster or sentinel. */
export function nodeRedisIdentity({ options = {} }: NodeRedisConnection, isAlone: boolean): ClientIdentity {
  const { username, password, credentialsProvider, socket = {} } = options
  const place = isAlone ? (socket.path ?? `${socket.host ?? 'localhost'}:${socket.port ?? 6379}`) : ''
  // node-redis makes a provider of every name and password.
  return { place, username, password, provider: username || password ? undefined : credentialsProvider }
}

/** A name for the Redis behind a client, the same in every process that is configured alike. */
export function nodeRedisClusterId(client: NodeRedisClient): string {
  if (isNodeRedisSentinel(client)) return 'sentinel'
  if (!isNodeRedisCluster(client)) {
    const { path, host = 'localhost', port = 6379 } = client.options?.socket ?? {}
    return path ?? `${host}:${port}`
  }
  const roots = (client._options.rootNodes ?? []).map(({ url, socket }) => {
    if (url !== undefined) return url.replace(/^rediss?:\/\//, '').replace(/^.*@/, '')
    return `${socket?.host ?? 'localhost'}:${socket?.port ?? 6379}`
  })
  return roots.sort()[0] ?? 'cluster'
}

/** Where a node of a cluster is for this client, which may see it by another address than the cluster itself. */
function mappedAddress(client: NodeRedisCluster, node: string): { host: string; port: number } {
  const { nodeAddressMap: map } = client._options
  const mapped: unknown = typeof map === 'function' ? map(node) : (map as Record<string, unknown> | undefined)?.[node]
  return (mapped as { host: string; port: number } | undefined) ?? addressOf(node)
}

function addressOf(node: string): { host: string; port: number } {
  const at = node.lastIndexOf(':')
  return { host: node.slice(0, at), port: Number(node.slice(at + 1)) }
}
