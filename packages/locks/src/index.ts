export type { LostLock } from './engine/lost-lock.ts'
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
export { CountdownLatch } from './latch/countdown-latch.ts'
export type { GuardedFunction, LockOptions, OwnerOptions, WithLockOptions } from './lock/leased-lock.ts'
export { LeasedLock } from './lock/leased-lock.ts'
export { Lock } from './lock/lock.ts'
export { LockHandle } from './lock/lock-handle.ts'
export type { LockKind } from './lock/protocol.ts'
export { Locks } from './locks.ts'
export { lockFamilies } from './metrics/lock-families.ts'
export { bucketBoundsMs, type DurationSnapshot, type LockMetricsSnapshot } from './metrics/lock-metrics.ts'
export { type LockReport, LockReporter, type LockReporterOptions } from './metrics/lock-reporter.ts'
export type { HeldLockRow, LocksSnapshot, WaitingTaskRow } from './metrics/locks-snapshot.ts'
export { MultiLock, MultiLockHandle } from './multi/multi-lock.ts'
export type { LocksOptions, ReplicaAcknowledgement } from './options.ts'
export { ReadWriteLock } from './read-write/read-write-lock.ts'
export { Semaphore } from './semaphore/semaphore.ts'
