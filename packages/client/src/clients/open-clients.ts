import type { Redis } from '@firebreak/redis'
import type { Upstream } from '@firebreak/shield'

/** The part of a protected client that others use. */
export interface ClientMember {
  readonly upstream: Upstream
  /** The client for our own commands; each access creates a new one. */
  readonly redis: Redis
  readonly state: 'ready' | 'opening' | 'closed'
}

/**
 * Clients that can stand in for each other. They are held weakly: a client that the application has closed and dropped
 * is freed, whether or not it was unprotected.
 */
export class OpenClients {
  readonly #members = new Set<WeakRef<ClientMember>>()

  get size(): number {
    return this.#members.size
  }

  /** True if there is no other. */
  isOnly(member: WeakRef<ClientMember>): boolean {
    return this.#members.size === 1 && this.#members.has(member)
  }

  add(member: WeakRef<ClientMember>): void {
    this.#members.add(member)
  }

  delete(member: WeakRef<ClientMember>): void {
    this.#members.delete(member)
  }

  /** A connected client; if there is none, one that is connecting, otherwise any that is left. */
  get(): ClientMember | undefined {
    let best: ClientMember | undefined
    for (const reference of this.#members) {
      const member = reference.deref()
      if (member?.state === 'ready') return member
      if (best === undefined || (best.state === 'closed' && member?.state === 'opening')) best = member
    }
    return best
  }
}
