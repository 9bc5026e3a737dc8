import type { OpenPipe } from '@firebreak/core/resp'

/** How the shield's own connections authenticate. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
}

/**
 * What a shield needs from the application's Redis, whichever library it uses: which node owns a slot, and a plain
 * connection to that node for the shield alone. A proxy or another client implements only this.
 */
export interface Upstream {
  /** True if slots are spread over nodes; otherwise one node owns them all. */
  readonly isCluster: boolean
  /** The master that owns a slot as the application currently sees it, `host:port`; undefined while unknown. */
  nodeOf(slot: number): string | undefined
  /** How to open a new connection to a node, encrypted if the application's own is. */
  connect(node: string): OpenPipe
  credentials(): Credentials
  /**
   * Set if users other than the application's may read what was read here: no reply is kept for longer without asking
   * again, since the server does not report that a user's permissions have changed.
   */
  readonly rightsMs?: number
  /** A node said that a slot is elsewhere: reload the slot map. */
  refresh?(): void
}
