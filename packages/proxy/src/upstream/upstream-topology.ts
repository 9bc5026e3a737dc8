import type { UpstreamNode } from './upstream-node.ts'

/** Who serves which keys, as far as it is known now. */
export interface UpstreamTopology {
  /** True where keys are spread over nodes by slot; false where one node has all of them, though not always the same. */
  readonly isSpread: boolean
  /** The nodes that take writes. */
  readonly masters: readonly UpstreamNode[]
  readonly nodes: Iterable<UpstreamNode>
  /** One slot of each master: who has it after a failover stands for that master. */
  readonly homeSlots: readonly number[]
  nodeOf(slot: number): UpstreamNode
  /** A node said who has a slot now; an empty host is the node's own. */
  moved(slot: number, host: string, port: number, asked: UpstreamNode): UpstreamNode
  /** The node at an address, for one request. */
  nodeAt(host: string, port: number, asked: UpstreamNode): UpstreamNode
  /** Looks again. */
  refresh(): Promise<void>
  close(): void
}

/** What the requests of all clients share where it is not one Redis for good that is behind. */
export interface ClusterSettings {
  readonly topology: UpstreamTopology
  /** How long a request is sent again that was redirected or lost, where that is safe. */
  readonly retryForMs: number
}
