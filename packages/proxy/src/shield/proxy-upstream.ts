import type { OpenPipe } from '@firebreak/core/resp'
import type { Credentials, Upstream } from '@firebreak/shield'
import type { ConnectTarget, TransportKind } from '../transport/transport.ts'
import { transportPipe } from '../transport/transport-pipe.ts'
import type { Identity } from '../upstream/identity.ts'

/** Where the proxy's keys currently live. */
export interface Whereabouts {
  readonly isCluster: boolean
  readonly transports: TransportKind
  targetOf(slot: number): ConnectTarget
  refresh(): void
}

/** Plain connections to the Redis behind the proxy for the shield, as one user. */
export class ProxyUpstream implements Upstream {
  readonly rightsMs = 5000
  readonly #where: Whereabouts
  readonly #identity: Identity
  /** How to reach each node that was ever named. */
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

  connect(node: string): OpenPipe {
    return transportPipe(this.#where.transports, this.#targets.get(node)!)
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
