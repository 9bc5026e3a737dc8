import type { ClientConnection } from '../client/client-connection.ts'
import type { SharedLane } from '../upstream/shared-lane.ts'

/** The shared connections that a client's requests go over, so that none of them overtakes another. */
export class ClientLanes {
  readonly #client: ClientConnection
  #lane: SharedLane | undefined

  constructor(client: ClientConnection) {
    this.#client = client
  }

  /** User, protocol or database have changed: other connections from now on. */
  forget(): void {
    this.#lane = undefined
  }

  /** Where scripts go now; undefined where what is owed has to come first. */
  forScripts(): SharedLane | undefined {
    const { slots, host, session } = this.#client
    if (slots.owed > 0 && this.#lane?.use !== 'scripts') return undefined
    if (slots.owed === 0 || this.#lane === undefined || this.#lane.isClosed)
      this.#lane = host.node.lane(session.snapshot(), 'scripts')
    return this.#lane
  }

  /** Where plain commands go now. */
  forCommands(): SharedLane {
    const { slots, host, session } = this.#client
    const lane = this.#lane
    if (lane !== undefined && !lane.isRetired && (slots.owed > 0 || lane.use === 'commands')) return lane
    // On another connection a request might overtake those before it.
    if (lane !== undefined && !lane.isClosed && slots.owed > 0) return lane
    return (this.#lane = host.node.lane(session.snapshot()))
  }
}
