import { FirebreakError } from '@firebreak/core'

/** Why a lock stopped being ours before we released it. */
export type LossReason =
  /** The lease ran out by this process' clock: no renewal was confirmed in time. */
  | 'expired'
  /** According to Redis the entry is gone or belongs to another owner: forced open, restarted empty, failed over. */
  | 'taken'

/** A lock was lost while this process still relied on it; the reason of the handle's AbortSignal. */
export class LockLostError extends FirebreakError {
  readonly lock: string
  readonly token: number
  readonly reason: LossReason
  /** The result of `withLock`'s function, if the lock was lost before it ended. */
  readonly result: unknown

  constructor(lock: string, token: number, reason: LossReason, ended?: { readonly result: unknown }) {
    const how = reason === 'expired' ? 'its lease expired without renewal' : 'Redis no longer lists it as ours'
    super('FB_LOCK_LOST', `the lock "${lock}" (token ${token}) is lost: ${how}; stop the work that it protects`)
    this.lock = lock
    this.token = token
    this.reason = reason
    this.result = ended?.result
  }
}

/** `withLock` waited for as long as it was allowed. */
export class LockTimeoutError extends FirebreakError {
  readonly lock: string
  readonly waitMs: number

  constructor(lock: string, waitMs: number) {
    super(
      'FB_LOCK_TIMEOUT',
      `the lock "${lock}" was not free within ${waitMs} ms; raise waitMs or hold it for a shorter time`,
    )
    this.lock = lock
    this.waitMs = waitMs
  }
}

/** Unlock was called by an owner that does not hold the lock. */
export class LockNotOwnedError extends FirebreakError {
  readonly lock: string

  constructor(lock: string) {
    super(
      'FB_LOCK_NOT_OWNED',
      `the lock "${lock}" is not held by this owner; unlock with the handle that lock() returned, or give the same owner`,
    )
    this.lock = lock
  }
}

/** The required number of replicas did not confirm the lock in time, so it was released. */
export class LockNotReplicatedError extends FirebreakError {
  readonly lock: string
  readonly acknowledged: number

  constructor(lock: string, acknowledged: number, wanted: number) {
    super(
      'FB_LOCK_NOT_REPLICATED',
      `the lock "${lock}" reached ${acknowledged} of ${wanted} replicas in time and was released; see the option replicas`,
    )
    this.lock = lock
    this.acknowledged = acknowledged
  }
}

/** A reader asked for the write lock without releasing first: two such readers would wait for each other. */
export class LockUpgradeError extends FirebreakError {
  readonly lock: string

  constructor(lock: string) {
    super('FB_LOCK_UPGRADE', `the reader of "${lock}" cannot upgrade to a write lock; release the read lock first`)
    this.lock = lock
  }
}

/** More tasks of this process wait than the option `maxWaiting` allows. */
export class LockQueueFullError extends FirebreakError {
  constructor(lock: string, maxWaiting: number) {
    super(
      'FB_LOCK_QUEUE_FULL',
      `"${lock}": ${maxWaiting} tasks are already waiting for locks; raise maxWaiting or shed load`,
    )
  }
}

/** The client of the locks was closed. */
export class LocksClosedError extends FirebreakError {
  constructor() {
    super('FB_LOCKS_CLOSED', 'this Locks is closed; create a new one')
  }
}
