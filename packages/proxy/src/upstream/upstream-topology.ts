import type { UpstreamNode } from './upstream-node.ts'

/** Who serves which keys, as currently known. */
export interface UpstreamTopology {
  /** True if keys are spread over nodes by slot; false if one node has all of them, though not always the same one. */
  readonly isSpread: boolean
  /** The nodes that take writes. */
  readonly masters: readonly UpstreamNode[]
  readonly nodes: Iterable<UpstreamNode>
  /** One slot of each master: whoever has it after a failover stands for that master. */
  readonly homeSlots: readonly number[]
  nodeOf(slot: number): UpstreamNode
  /** A node reported who has a slot now; an empty host means that node's own. */
  moved(slot: number, host: string, port: number, asked: UpstreamNode): UpstreamNode
  /** The node at an address, for one request. */
  nodeAt(host: string, port: number, asked: UpstreamNode): UpstreamNode
  /** Looks again. */
  refresh(): Promise<void>
  close(): void
}

/** What all clients' requests share if there is more than one fixed Redis behind the proxy. */
export interface ClusterSettings {
  readonly topology: UpstreamTopology
  /** How long to resend a request that was redirected or lost, if that is safe. */
  readonly retryForMs: number
}
