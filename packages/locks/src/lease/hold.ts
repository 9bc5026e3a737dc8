import { LockLostError, type LossReason } from '../errors.ts'
import type { LockProtocol } from '../lock/protocol.ts'

/** What one owner has of one lock, from its first acquisition to its last release. */
export class Hold {
  readonly protocol: LockProtocol
  readonly owner: string
  readonly token: number
  readonly leaseMs: number
  /** Renewed by the watchdog; an explicit lease is not. */
  readonly isRenewed: boolean
  readonly acquiredAt: number
  /** The lease's end by this process' clock, counted from before the request was sent. */
  deadline: number
  /** Entries not yet left; changed before Redis is told, so that what is sent is in order. */
  count = 1
  /** Hand-offs within this process since the lock was last won from Redis. */
  readonly handoffs: number
  state: 'held' | 'released' | 'lost' = 'held'
  #controller: AbortController | undefined
  #loss: LockLostError | undefined

  constructor(fields: {
    protocol: LockProtocol
    owner: string
    token: number
    leaseMs: number
    isRenewed: boolean
    sentAt: number
    acquiredAt: number
    handoffs: number
  }) {
    this.protocol = fields.protocol
    this.owner = fields.owner
    this.token = fields.token
    this.leaseMs = fields.leaseMs
    this.isRenewed = fields.isRenewed
    this.acquiredAt = fields.acquiredAt
    this.deadline = fields.sentAt + fields.leaseMs
    this.handoffs = fields.handoffs
  }

  /** Whether the lock is ours at this time; needs no event and no Redis. */
  isHeldAt(now: number): boolean {
    return this.state === 'held' && now < this.deadline
  }

  /** Aborted when the lock is lost, never by a release. Made on first use: most locks are never asked for it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#loss !== undefined) this.#controller.abort(this.#loss)
    }
    return this.#controller.signal
  }

  lose(reason: LossReason): LockLostError {
    this.state = 'lost'
    this.#loss = new LockLostError(this.protocol.name, this.token, reason)
    this.#controller?.abort(this.#loss)
    return this.#loss
  }
}
