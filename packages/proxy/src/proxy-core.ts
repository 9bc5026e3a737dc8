import type { ClientConnection } from './client/client-connection.ts'
import { ClientConnection as Client } from './client/client-connection.ts'
import type { ClientHost, Turn } from './client/client-host.ts'
import { ProxyUsers } from './client/proxy-users.ts'
import { Session } from './client/session.ts'
import type { ResolvedProxyOptions } from './options.ts'
import { netTransports } from './transport/net-transport.ts'
import type { Transport, TransportKind } from './transport/transport.ts'
import { type ConnectionState, nobody } from './upstream/identity.ts'
import { UpstreamNode } from './upstream/upstream-node.ts'

/** The part of a proxy that runs once per thread: its clients and its connections to Redis. */
export class ProxyCore implements ClientHost {
  readonly turn: Turn = { nowMs: performance.now() }
  readonly node: UpstreamNode
  readonly freshState: ConnectionState = { identity: nobody, version: 2, database: 0 }
  readonly maxRequestBytes: number
  readonly maxOutputBytes: number
  readonly maxInFlight: number
  readonly slowReaderMs: number
  readonly users: ProxyUsers | undefined
  readonly clients = new Set<ClientConnection>()
  readonly #options: ResolvedProxyOptions
  #isolation: NodeJS.Timeout | undefined
  isIsolated = false
  #sweep: NodeJS.Timeout
  readonly counters = { connections: 0, refused: 0, slowReaders: 0, idleClosed: 0 }

  constructor(options: ResolvedProxyOptions, transports: TransportKind = netTransports) {
    this.#options = options
    this.maxRequestBytes = options.maxRequestBytes
    this.maxOutputBytes = options.maxOutputBytes
    this.maxInFlight = options.maxInFlight
    this.slowReaderMs = options.slowReaderMs
    this.users = options.users === undefined ? undefined : new ProxyUsers(options.users, options.identity)
    this.node = new UpstreamNode(options.targets[0]!, {
      transports,
      connectWaitMs: options.connectWaitMs,
      maxIdleConnections: options.maxIdleConnections,
      idleConnectionMs: options.idleConnectionMs,
      onLatency: () => {},
    })
    this.#sweep = setInterval(() => this.#tick(), 1000)
    this.#sweep.unref()
  }

  /** Takes a client that has connected; `attach` makes its transport. */
  accept(attach: (client: ClientConnection) => Transport): void {
    this.counters.connections++
    const { identity, database } = this.#options
    const users = this.users
    const session =
      users === undefined
        ? new Session(identity, database, true)
        : new Session(users.isOpen ? users.openIdentity : nobody, database, users.isOpen)
    const client = new Client(this, session)
    const transport = attach(client)
    client.attach(transport)
    if (this.clients.size >= this.#options.maxClients) {
      this.counters.refused++
      transport.write(Buffer.from('-ERR max number of clients reached\r\n'))
      transport.end()
      return
    }
    this.clients.add(client)
  }

  isolate(forMs: number): void {
    clearTimeout(this.#isolation)
    this.isIsolated = forMs > 0
    if (forMs <= 0) return
    const waitMs = Math.min(forMs + 100, 2 ** 31 - 1)
    this.#isolation = setTimeout(() => {
      this.isIsolated = false
    }, waitMs)
    this.#isolation.unref()
  }

  infoSection(): string {
    const lines = [
      '# Firebreak',
      'firebreak_version:0.1.0',
      `firebreak_clients:${this.clients.size}`,
      `firebreak_connections_received:${this.counters.connections}`,
      `firebreak_connections_refused:${this.counters.refused}`,
      `firebreak_upstream_shared:${this.node.sharedCount}`,
      `firebreak_upstream_owned:${this.node.ownedCount}`,
      `firebreak_upstream_idle:${this.node.idleCount}`,
      `firebreak_slow_readers_closed:${this.counters.slowReaders}`,
    ]
    return `${lines.join('\r\n')}\r\n`
  }

  onClientGone(client: ClientConnection): void {
    this.clients.delete(client)
  }

  onSlowReader(client: ClientConnection): void {
    this.counters.slowReaders++
    client.destroy()
  }

  close(): void {
    clearInterval(this.#sweep)
    clearTimeout(this.#isolation)
    for (const client of [...this.clients]) client.destroy()
    this.node.close()
  }

  #tick(): void {
    this.node.sweep()
    const { idleTimeoutMs } = this.#options
    if (idleTimeoutMs === 0) return
    const oldest = performance.now() - idleTimeoutMs
    for (const client of this.clients) {
      if (client.isIdle && client.lastActiveMs < oldest) {
        this.counters.idleClosed++
        client.destroy()
      }
    }
  }
}
