export type { LostLock } from './engine/lock-engine.ts'
export {
  LockLostError,
  LockNotOwnedError,
  LockNotReplicatedError,
  LockQueueFullError,
  LocksClosedError,
  LockTimeoutError,
  LockUpgradeError,
  type LossReason,
} from './errors.ts'
export type { GuardedFunction, LockOptions, OwnerOptions, WithLockOptions } from './lock/leased-lock.ts'
export { Lock } from './lock/lock.ts'
export { LockHandle } from './lock/lock-handle.ts'
export type { LockKind } from './lock/protocol.ts'
export { Locks } from './locks.ts'
export { bucketBoundsMs, type DurationSnapshot, type LockMetricsSnapshot } from './metrics/lock-metrics.ts'
export type { HeldLockRow, LocksSnapshot, WaitingTaskRow } from './metrics/locks-snapshot.ts'
export type { LocksOptions, ReplicaAcknowledgement } from './options.ts'
