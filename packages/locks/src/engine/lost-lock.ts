import type { LockLostError, LossReason } from '../errors.ts'
import type { LockKind } from '../lock/protocol.ts'

/** A lost lock, as reported by the event. */
export interface LostLock {
  readonly name: string
  readonly kind: LockKind
  readonly owner: string
  readonly token: number
  readonly reason: LossReason
  readonly error: LockLostError
}
