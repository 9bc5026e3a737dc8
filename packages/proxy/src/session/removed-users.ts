import { encodeCommand } from '@firebreak/core/resp'
import type { UpstreamLostError } from '../errors.ts'
import type { Identity } from '../upstream/identity.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { Session } from './session.ts'

const ping = encodeCommand(['PING'])

interface LoggedIn {
  readonly session: Session
  destroy(): void
}

/** True if the server no longer accepts a user's credentials. */
export function isRemovedUser({ refusal }: UpstreamLostError): boolean {
  return refusal?.toString('latin1', 0, 10) === '-WRONGPASS'
}

/**
 * Closes the clients of a removed user, as Redis does with its own: Redis closes the connections that they share and
 * accepts no new ones with their credentials. Clients that share none at that moment are closed on their next request.
 */
export class RemovedUsers {
  readonly #clients: Iterable<LoggedIn>
  readonly #checking = new Set<string>()

  constructor(clients: Iterable<LoggedIn>) {
    this.#clients = clients
  }

  /** The server closed a connection of that user: is the user the reason? */
  check(node: UpstreamNode, identity: Identity, nowMs: number): void {
    const { id } = identity
    if (node.isClosed || this.#checking.has(id) || this.#of(id).length === 0) return
    this.#checking.add(id)
    const done = () => void this.#checking.delete(id)
    const onLost = (_tag: number, error: UpstreamLostError) => {
      done()
      if (isRemovedUser(error)) for (const client of this.#of(id)) client.destroy()
    }
    const lane = node.lane({ identity, version: 2, database: 0 })
    lane.send(ping, 0, ping.length, { onReply: done, onLost }, 0, 0, nowMs)
  }

  #of(id: string): LoggedIn[] {
    return [...this.#clients].filter(({ session }) => session.hasShownUser && session.identity.id === id)
  }
}
