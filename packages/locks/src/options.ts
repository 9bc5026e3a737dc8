import { type Clock, InvalidOptionError, type Runtime, systemRuntime, type Timers } from '@firebreak/core'
import { defaultTokenMemoryMs } from './token/token-script.ts'

/** How long a first acquisition waits for replicas. */
export interface ReplicaAcknowledgement {
  /** The number of replicas that must have the lock, or it is released. */
  readonly count: number
  /** @default 100 */
  readonly timeoutMs?: number
}

/** How a process' locks behave; every field has a default. */
export interface LocksOptions {
  /**
   * The default lease; while the lock is held, it is renewed after every third of it.
   * @default 30000
   */
  readonly leaseMs?: number
  /**
   * After this many hand-offs within this process, a lock is offered to all processes again.
   * @default 16
   */
  readonly maxLocalHandoffs?: number
  /**
   * How long a channel without waiters stays subscribed.
   * @default 1000
   */
  readonly channelLingerMs?: number
  /**
   * Locks renewed by one script.
   * @default 100
   */
  readonly renewBatch?: number
  /**
   * A waiter of a fair lock that has been silent for this long (by Redis' clock) is skipped.
   * @default 5000
   */
  readonly waiterTtlMs?: number
  /**
   * Tasks of this process that may wait at once; more are refused.
   * @default 100000
   */
  readonly maxWaiting?: number
  /**
   * Wait for replicas on each first acquisition (`WAIT`, which blocks the shared connection meanwhile).
   * @default none
   */
  readonly replicas?: ReplicaAcknowledgement
  /**
   * Wait on each first acquisition until Redis has written it to its append-only file, and the number of replicas in
   * `replicas` to theirs (`WAITAOF`, Redis 7.2; it blocks the shared connection meanwhile).
   * @default none
   */
  readonly fsync?: { /** @default 1000 */ readonly timeoutMs?: number }
  /**
   * How long Redis remembers the highest token issued for a name after its last use: for this long tokens do not go
   * back even if its clock does.
   * @default 3600000
   */
  readonly tokenMemoryMs?: number
  /**
   * The part before the colon in an owner's name in Redis; unique in the fleet.
   * @default a random UUID
   */
  readonly instanceId?: string
  /** A clock that never steps. @default the runtime's */
  readonly clock?: Clock
  /** @default the runtime's */
  readonly timers?: Timers
  /** Time, timers, randomness and ids, unless given separately. @default the system's */
  readonly runtime?: Runtime
}

/** Every option with its value. */
export interface ResolvedLocksOptions {
  readonly leaseMs: number
  readonly maxLocalHandoffs: number
  readonly channelLingerMs: number
  readonly renewBatch: number
  readonly waiterTtlMs: number
  readonly maxWaiting: number
  readonly replicas: Required<ReplicaAcknowledgement> | undefined
  readonly fsync: { readonly timeoutMs: number } | undefined
  readonly tokenMemoryMs: number
  readonly instanceId: string
  readonly clock: Clock
  readonly timers: Timers
  readonly runtime: Runtime
}

/** Fills in the defaults and refuses invalid values. */
export function resolveLocksOptions(options: LocksOptions): ResolvedLocksOptions {
  const { replicas, fsync, runtime = systemRuntime } = options
  const resolved: ResolvedLocksOptions = {
    leaseMs: options.leaseMs ?? 30_000,
    maxLocalHandoffs: options.maxLocalHandoffs ?? 16,
    channelLingerMs: options.channelLingerMs ?? 1000,
    renewBatch: options.renewBatch ?? 100,
    waiterTtlMs: options.waiterTtlMs ?? 5000,
    maxWaiting: options.maxWaiting ?? 100_000,
    replicas: replicas === undefined ? undefined : { timeoutMs: 100, ...replicas },
    fsync: fsync === undefined ? undefined : { timeoutMs: 1000, ...fsync },
    tokenMemoryMs: options.tokenMemoryMs ?? defaultTokenMemoryMs,
    instanceId: options.instanceId ?? runtime.newId(),
    clock: options.clock ?? runtime.clock,
    timers: options.timers ?? runtime.timers,
    runtime,
  }
  requireInteger('leaseMs', resolved.leaseMs, 30)
  requireInteger('maxLocalHandoffs', resolved.maxLocalHandoffs, 0)
  requireInteger('channelLingerMs', resolved.channelLingerMs, 0)
  requireInteger('renewBatch', resolved.renewBatch, 1)
  requireInteger('waiterTtlMs', resolved.waiterTtlMs, 30)
  requireInteger('maxWaiting', resolved.maxWaiting, 1)
  // An epoch lasts a second.
  requireInteger('tokenMemoryMs', resolved.tokenMemoryMs, 2000)
  if (resolved.fsync !== undefined) requireInteger('fsync.timeoutMs', resolved.fsync.timeoutMs, 1)
  if (resolved.replicas !== undefined) {
    requireInteger('replicas.count', resolved.replicas.count, 1)
    // WAIT 0 would wait forever on the shared connection.
    requireInteger('replicas.timeoutMs', resolved.replicas.timeoutMs, 1)
  }
  if (!/^[^:]+$/.test(resolved.instanceId)) {
    throw new InvalidOptionError(
      'instanceId',
      resolved.instanceId,
      'a string without colons that is unique in the fleet',
    )
  }
  return resolved
}

/** Refuses a time to wait that is none: it would be waited for ever. */
export function requireWait(waitMs: number): void {
  if (typeof waitMs !== 'number' || !(waitMs >= 0)) requireInteger('waitMs', waitMs, 0)
}

/** Refuses a value that is not a safe integer of at least `least`. */
export function requireInteger(option: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new InvalidOptionError(option, value, `a whole number of at least ${least}`)
  }
}
