import type { OpenPipe } from '@firebreak/core/resp'

/** How the shield's own connections prove who they are. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
}

/**
 * What a shield needs of the application's Redis, whichever library it is: which node owns a slot, and a plain
 * connection to that node for the shield alone. A proxy or another client implements this and nothing else.
 */
export interface Upstream {
  /** True where slots are spread over nodes; else one node owns them all. */
  readonly isCluster: boolean
  /** The master that owns a slot as the application sees it now, `host:port`; undefined while that is not known. */
  nodeOf(slot: number): string | undefined
  /** How a new connection to a node is opened, encrypted where the application's own is. */
  connect(node: string): OpenPipe
  credentials(): Credentials
  /**
   * Set where others than the application may read what was read here: no reply is kept for longer without being asked
   * for again, since the server tells nobody that a user's rights have changed.
   */
  readonly rightsMs?: number
  /** A node said that a slot is elsewhere: the map of slots is to be read again. */
  refresh?(): void
}
