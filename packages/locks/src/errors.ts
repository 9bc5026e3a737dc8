import { FirebreakError } from '@firebreak/core'

/** Why a lock stopped being ours before we released it. */
export type LossReason =
  /** The lease ran out by this process' own clock: no renewal was confirmed in time. */
  | 'expired'
  /** Redis said that the entry is gone or somebody else's: forced open, restarted empty, failed over. */
  | 'taken'

/** A lock was lost while this process still believed in it; the reason of the handle's AbortSignal. */
export class LockLostError extends FirebreakError {
  readonly lock: string
  readonly token: number
  readonly reason: LossReason
  /** What the function of a `withLock` gave, where the lock was lost before it ended. */
  readonly result: unknown

  constructor(lock: string, token: number, reason: LossReason, ended?: { readonly result: unknown }) {
    const how = reason === 'expired' ? 'its lease ran out unrenewed' : 'Redis no longer has it as ours'
    super('FB_LOCK_LOST', `the lock "${lock}" (token ${token}) is lost: ${how}; stop the work that it guards`)
    this.lock = lock
    this.token = token
    this.reason = reason
    this.result = ended?.result
  }
}

/** `withLock` waited as long as it was told to. */
export class LockTimeoutError extends FirebreakError {
  readonly lock: string
  readonly waitMs: number

  constructor(lock: string, waitMs: number) {
    super('FB_LOCK_TIMEOUT', `the lock "${lock}" was not free within ${waitMs} ms; raise waitMs or hold it shorter`)
    this.lock = lock
    this.waitMs = waitMs
  }
}

/** Unlock was called by somebody who does not hold the lock. */
export class LockNotOwnedError extends FirebreakError {
  readonly lock: string

  constructor(lock: string) {
    super(
      'FB_LOCK_NOT_OWNED',
      `the lock "${lock}" is not held by this owner; unlock through the handle that lock() gave, or name the same owner`,
    )
    this.lock = lock
  }
}

/** The wanted number of replicas did not confirm the lock in time; it was given back. */
export class LockNotReplicatedError extends FirebreakError {
  readonly lock: string
  readonly acknowledged: number

  constructor(lock: string, acknowledged: number, wanted: number) {
    super(
      'FB_LOCK_NOT_REPLICATED',
      `the lock "${lock}" reached ${acknowledged} of ${wanted} replicas in time and was given back; see the option replicas`,
    )
    this.lock = lock
    this.acknowledged = acknowledged
  }
}

/** A reader asked for the write lock without releasing first: two such readers would wait for each other. */
export class LockUpgradeError extends FirebreakError {
  readonly lock: string

  constructor(lock: string) {
    super('FB_LOCK_UPGRADE', `the reader of "${lock}" cannot become its writer; release the read lock first`)
    this.lock = lock
  }
}

/** More tasks of this process wait than the option `maxWaiting` allows. */
export class LockQueueFullError extends FirebreakError {
  constructor(lock: string, maxWaiting: number) {
    super('FB_LOCK_QUEUE_FULL', `"${lock}": ${maxWaiting} tasks wait for locks already; raise maxWaiting or shed load`)
  }
}

/** The client of the locks was closed. */
export class LocksClosedError extends FirebreakError {
  constructor() {
    super('FB_LOCKS_CLOSED', 'these locks are closed; make a new Locks')
  }
}
