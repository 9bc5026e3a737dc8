import type { Credentials, NodeSocket, Upstream } from '@firebreak/shield'
import type { ConnectTarget } from '../transport/transport.ts'
import type { Identity } from '../upstream/identity.ts'

/** Where the proxy's keys live, as the proxy sees it now. */
export interface Whereabouts {
  readonly isCluster: boolean
  targetOf(slot: number): ConnectTarget
  /** A plain stream to a Redis, for the shield alone. */
  streamTo(target: ConnectTarget): NodeSocket
  refresh(): void
}

/** Plain connections to the Redis behind for the shield, as one user. */
export class ProxyUpstream implements Upstream {
  readonly rightsMs = 5000
  readonly #where: Whereabouts
  readonly #identity: Identity
  /** How each node that was ever named is reached. */
  readonly #targets = new Map<string, ConnectTarget>()

  constructor(where: Whereabouts, identity: Identity) {
    this.#where = where
    this.#identity = identity
  }

  get isCluster(): boolean {
    return this.#where.isCluster
  }

  nodeOf(slot: number): string {
    const target = this.#where.targetOf(slot)
    const node = target.path ?? `${target.host}:${target.port}`
    this.#targets.set(node, target)
    return node
  }

  connect(node: string): NodeSocket {
    return this.#where.streamTo(this.#targets.get(node)!)
  }

  credentials(): Credentials {
    const { username, password } = this.#identity
    return {
      ...(username !== undefined && { username: textOf(username) }),
      ...(password !== undefined && { password: textOf(password) }),
    }
  }

  refresh(): void {
    this.#where.refresh()
  }
}

function textOf(value: string | Uint8Array): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString()
}
