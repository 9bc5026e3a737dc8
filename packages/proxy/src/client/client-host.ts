import type { OnlyNode } from '../cluster/cluster-of-one.ts'
import type { ClusterSettings } from '../cluster/cluster-sender.ts'
import type { Observed } from '../observe/firebreak-command.ts'
import type { ClientRoster } from '../roster/client-roster.ts'
import type { ProxyUser } from '../session/proxy-users.ts'
import type { ProxyShield } from '../shield/proxy-shield.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { ClientConnection } from './client-connection.ts'

/** The time, read once per event instead of once per command. */
export interface Turn {
  nowMs: number
}

/** What a client needs of the proxy it is connected to. */
export interface ClientHost {
  readonly turn: Turn
  /** The Redis behind; of a cluster, the node for what needs no other. */
  readonly node: UpstreamNode
  /** Set where a cluster is behind. */
  readonly cluster: ClusterSettings | undefined
  /** Nobody, RESP2, database 0: how a connection to Redis begins. */
  readonly freshState: ConnectionState
  /** True while a CLIENT PAUSE may hold up connections: then nobody shares one. */
  readonly isIsolated: boolean
  /** Counts keys and answers for hot ones; undefined for a plain proxy. */
  readonly shield: ProxyShield | undefined
  readonly maxRequestBytes: number
  readonly maxHeldBytes: number
  readonly maxOutputBytes: number
  readonly maxInFlight: number
  readonly slowReaderMs: number
  /** True while all clients together leave too much unread. */
  readonly isFull: boolean
  /** What FIREBREAK tells about. */
  readonly observed: Observed
  /** The proxy's own users; undefined where AUTH is the server's matter. */
  readonly users: ProxyUser | undefined
  /** The proxy as a cluster of one, where it shows itself so. */
  onlyNode(client: ClientConnection): OnlyNode | undefined
  /** CLIENT PAUSE or UNPAUSE was carried out. */
  isolate(forMs: number): void
  infoSection(): string
  /** The clients of all threads. */
  readonly roster: ClientRoster
  onClientGone(client: ClientConnection): void
  onSlowReader(client: ClientConnection): void
}
