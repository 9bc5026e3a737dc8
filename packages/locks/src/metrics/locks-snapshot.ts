import type { LockEngine } from '../engine/lock-engine.ts'
import type { LockKind } from '../lock/protocol.ts'
import type { LockMetricsSnapshot } from './lock-metrics.ts'

/** A lock that this process holds. */
export interface HeldLockRow {
  readonly name: string
  readonly kind: LockKind
  readonly owner: string
  readonly token: number
  readonly holdCount: number
  readonly heldMs: number
  readonly remainingMs: number
  readonly isRenewed: boolean
}

/** A task of this process that waits. */
export interface WaitingTaskRow {
  readonly name: string
  readonly kind: LockKind
  readonly owner: string
  readonly waitingMs: number
}

/** What a process holds and waits for at one moment; longest first, at most `maxRows` of each. */
export interface LocksSnapshot {
  readonly instanceId: string
  readonly held: readonly HeldLockRow[]
  readonly waiting: readonly WaitingTaskRow[]
  /** The total numbers, in case rows were left out. */
  readonly heldCount: number
  readonly waitingCount: number
  readonly metrics: LockMetricsSnapshot
}

/** Reads the engine's state into rows. */
export function takeSnapshot(engine: LockEngine, maxRows = 1000): LocksSnapshot {
  const now = engine.now()
  const holds = [...engine.watchdog.holds()].filter((hold) => hold.isHeldAt(now))
  const waiting = [...engine.waiting()]
  return {
    instanceId: engine.options.instanceId,
    held: holds
      .sort((a, b) => a.acquiredAt - b.acquiredAt)
      .slice(0, maxRows)
      .map((hold) => ({
        name: hold.protocol.name,
        kind: hold.protocol.kind,
        owner: hold.owner,
        token: hold.token,
        holdCount: hold.count,
        heldMs: now - hold.acquiredAt,
        remainingMs: hold.deadline - now,
        isRenewed: hold.isRenewed,
      })),
    waiting: waiting
      .sort((a, b) => a.since - b.since)
      .slice(0, maxRows)
      .map(({ protocol, owner, since }) => ({
        name: protocol.name,
        kind: protocol.kind,
        owner,
        waitingMs: now - since,
      })),
    heldCount: holds.length,
    waitingCount: waiting.length,
    metrics: engine.metrics.snapshot(engine.watchdog),
  }
}
