import type { ReplySlots } from '../replies/reply-slots.ts'
import type { Session } from '../session/session.ts'
import type { SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'

/** The shared connections that a client's requests use, chosen so that none overtakes another. */
export class SharedLanes {
  readonly #host: { readonly node: UpstreamNode }
  readonly #session: Session
  readonly #slots: ReplySlots
  #lane: SharedLane | undefined

  constructor(host: { readonly node: UpstreamNode }, session: Session, slots: ReplySlots) {
    this.#host = host
    this.#session = session
    this.#slots = slots
  }

  /** User, protocol or database has changed: use other connections from now on. */
  forget(): void {
    this.#lane = undefined
  }

  /** Where scripts go now; undefined if pending answers have to come first. */
  forScripts(): SharedLane | undefined {
    const { owed } = this.#slots
    if (owed > 0 && this.#lane?.use !== 'scripts') return undefined
    if (owed === 0 || this.#lane === undefined || this.#lane.isClosed)
      this.#lane = this.#host.node.lane(this.#session.snapshot(), 'scripts')
    return this.#lane
  }

  /** Where plain commands go now. */
  forCommands(): SharedLane {
    const { owed } = this.#slots
    const lane = this.#lane
    if (lane !== undefined && !lane.isRetired && (owed > 0 || lane.use === 'commands')) return lane
    // On another connection a request might overtake earlier ones.
    if (lane !== undefined && !lane.isClosed && owed > 0) return lane
    return (this.#lane = this.#host.node.lane(this.#session.snapshot()))
  }
}
