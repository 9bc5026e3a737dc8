import { type SocketPlace, socketPipe } from '@firebreak/core/node'
import type { OpenPipe } from '@firebreak/core/resp'
import type { Credentials, Upstream } from '@firebreak/shield'
import { connectionOptions, nodeOptions } from './cluster-options.ts'
import type { IoredisClient } from './ioredis-client.ts'

/** Where the keys of an ioredis client live, and plain connections to them for the shield. */
export class IoredisUpstream implements Upstream {
  readonly isCluster: boolean
  readonly #client: IoredisClient

  constructor(client: IoredisClient) {
    this.#client = client
    this.isCluster = client.isCluster === true
  }

  nodeOf(slot: number): string | undefined {
    const client = this.#client
    if (this.isCluster) return client.slots?.[slot]?.[0]
    const { path, host = 'localhost', port = 6379, sentinels, Connector } = client.options
    if (sentinels || Connector) {
      // Only the connection itself knows which server it ended up at.
      const { remoteAddress, remotePort } = client.stream ?? {}
      return remoteAddress === undefined ? undefined : `${remoteAddress}:${remotePort}`
    }
    return path ?? `${host}:${port}`
  }

  connect(node: string): OpenPipe {
    const options = nodeOptions(this.#client, node)
    const isPlain = !options.tls || ((options.sentinels ?? false) && !options.enableTLSForSentinelMode)
    const tls = typeof options.tls === 'object' ? options.tls : {}
    return socketPipe({ place: this.#addressOf(node), tls: isPlain ? undefined : tls, keepsProcess: false })
  }

  credentials(): Credentials {
    const [{ username, password }] = connectionOptions(this.#client)
    return { ...(username && { username }), ...(password && { password }) }
  }

  refresh(): void {
    this.#client.refreshSlotsCache?.(() => {})
  }

  #addressOf(node: string): SocketPlace {
    if (this.isCluster && this.#client.natMapper !== undefined) {
      const { host, port } = this.#client.natMapper(node)
      return { host, port: Number(port) }
    }
    const { path, family } = this.#client.options
    if (path !== undefined && node === path) return { path }
    const at = node.lastIndexOf(':')
    return { host: node.slice(0, at), port: Number(node.slice(at + 1)), ...(family && { family }) }
  }
}

/** A name for the Redis behind a client, the same in every process with the same configuration. */
export function defaultClusterId(client: IoredisClient): string {
  const { options } = client
  if (client.isCluster === true) {
    const addresses = (client.startupNodes ?? []).map(addressText).sort()
    return addresses[0] ?? 'cluster'
  }
  if (options.sentinels) return options.name ?? 'sentinel'
  return options.path ?? `${options.host ?? 'localhost'}:${options.port ?? 6379}`
}

/** The address of a start node or a Sentinel, as configured. */
export function addressText(node: unknown): string {
  if (typeof node === 'number') return `127.0.0.1:${node}`
  if (typeof node === 'string') return node.replace(/^rediss?:\/\//, '').replace(/^.*@/, '')
  const { host = '127.0.0.1', port = 6379 } = node as { host?: string; port?: number }
  return `${host}:${port}`
}
