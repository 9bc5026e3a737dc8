import type { RedisReply } from '@firebreak/redis'
import type { TokenCall } from '../token/token-script.ts'

/** What is held. */
export type LockKind = 'lock' | 'fair' | 'read' | 'write' | 'permit'

/** One attempt to take the lock, by an owner that does not hold it. */
export interface AcquireCall extends TokenCall {
  readonly owner: string
  readonly leaseMs: number
  /** Whether the owner will wait if it is busy (a fair lock then queues it). */
  readonly willWait: boolean
}

/**
 * The Redis commands of one kind of lock; everything else (owners, waiting, renewal, loss, metrics) is the engine's.
 * Every call may safely be sent twice: a client may resend what it got no reply for.
 */
export interface LockProtocol {
  readonly kind: LockKind
  readonly name: string
  /** Identifies the lock among all kinds. */
  readonly id: string
  /** The key that carries the lease. */
  readonly leaseKey: string
  /** Where its tokens are counted, and the end of their last epoch. */
  readonly tokenKeys: readonly [counter: string, epoch: string]
  /** How the lease is kept: with the whole key (`hash`), or for each owner (`set`). */
  readonly leaseShape: 'hash' | 'set'
  readonly channel: string
  /** `one`: a message wakes one waiter of a process. `owner`: it names the waiter that it wakes. */
  readonly wakes: 'one' | 'owner'
  /** Several owners may hold it at once, so one success means that the next waiter should try. */
  readonly isShared: boolean
  /** The token (> 0) if taken; otherwise -1 - ms until the holder's lease ends, so 0 if no end is known. */
  acquire(call: AcquireCall): Promise<RedisReply>
  /** An owner entered again (with a lease) or left one of several entries (0); false when it has lost the lock. */
  setCount(owner: string, count: number, leaseMs: number): Promise<boolean>
  /**
   * The last entry has been left: 0 if the lock no longer belonged to the owner, otherwise 1, and if it can be handed
   * over, one more for each process that was notified.
   */
  release(owner: string): Promise<RedisReply>
  /** Releases and acquires for another task of this process in one step; 0 if the lock was no longer the owner's. */
  handOver?(owner: string, next: AcquireCall): Promise<number>
  /** A waiter stops waiting: undo what its tries left behind. */
  abandon?(owner: string): Promise<void>
  /** Tells Redis that these owners are still waiting; returns those that Redis does not know as waiters. */
  keepWaiting?(owners: readonly string[]): Promise<string[]>
}
