import { LockLostError, type LossReason } from '../errors.ts'
import type { LockProtocol } from '../lock/protocol.ts'

/** What an owner asked for. */
export interface HoldRequest {
  /** As stored in Redis. */
  readonly owner: string
  /** The owner can be identified in a later call, and so re-enter; an anonymous one is known only by its handle. */
  readonly isKnown: boolean
  readonly leaseMs: number
  /** Renewed by the watchdog; an explicit lease is not, unless asked for. */
  readonly isRenewed: boolean
}

/** How a hold was acquired. */
export interface HoldOrigin {
  readonly token: number
  readonly sentAt: number
  readonly acquiredAt: number
  readonly handoffs: number
}

/** One owner's hold of one lock, from its first acquisition to its last release. */
export class Hold implements HoldRequest {
  readonly protocol: LockProtocol
  readonly owner: string
  readonly isKnown: boolean
  leaseMs: number
  readonly isRenewed: boolean
  readonly token: number
  readonly acquiredAt: number
  /** Hand-offs within this process since the lock was last won from Redis. */
  readonly handoffs: number
  /** The lease's end by this process' clock, counted from before the request was sent. */
  deadline: number
  /** Entries not yet left; changed before Redis is notified, so that commands are sent in order. */
  count = 1
  state: 'held' | 'released' | 'lost' = 'held'
  /** Its index in the watchdog's list. */
  place = 0
  #controller: AbortController | undefined
  #loss: LockLostError | undefined

  constructor(protocol: LockProtocol, request: HoldRequest, origin: HoldOrigin) {
    this.protocol = protocol
    this.owner = request.owner
    this.isKnown = request.isKnown
    this.leaseMs = request.leaseMs
    this.isRenewed = request.isRenewed
    this.token = origin.token
    this.acquiredAt = origin.acquiredAt
    this.handoffs = origin.handoffs
    this.deadline = origin.sentAt + request.leaseMs
  }

  /** Whether the lock is ours at this time; needs no event and no Redis. */
  isHeldAt(now: number): boolean {
    return this.state === 'held' && now < this.deadline
  }

  /** Aborted when the lock is lost, never by a release. Created on first use: most locks never need it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#loss !== undefined) this.#controller.abort(this.#loss)
    }
    return this.#controller.signal
  }

  /** Why it was lost, if it was. */
  get loss(): LockLostError | undefined {
    return this.#loss
  }

  lose(reason: LossReason): LockLostError {
    this.state = 'lost'
    this.#loss = new LockLostError(this.protocol.name, this.token, reason)
    this.#controller?.abort(this.#loss)
    return this.#loss
  }
}
