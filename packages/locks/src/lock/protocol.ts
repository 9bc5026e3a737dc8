import type { RedisReply } from '@firebreak/redis'
import type { TokenCall } from '../token/token-script.ts'

/** What kind of thing is held. */
export type LockKind = 'lock' | 'fair' | 'read' | 'write' | 'permit'

/** One try to take, by an owner that does not hold the lock. */
export interface AcquireCall extends TokenCall {
  readonly owner: string
  readonly leaseMs: number
  /** Whether the owner will wait when it is busy (a fair lock queues it then). */
  readonly willWait: boolean
}

/**
 * What one kind of lock says to Redis; all the rest (owners, waiting, renewal, loss, metrics) is the engine's.
 * Every call may be sent twice without harm: a client may send again what it got no reply for.
 */
export interface LockProtocol {
  readonly kind: LockKind
  readonly name: string
  /** Names the lock among all kinds. */
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
  /** Several owners may hold it at once, so that one success is a reason for the next waiter to try. */
  readonly isShared: boolean
  /** The token (> 0) when taken; otherwise -1 - ms until the holder's lease ends, so 0 where no end is known. */
  acquire(call: AcquireCall): Promise<RedisReply>
  /** An owner entered again (with a lease) or left one of several entries (0); false when it has lost the lock. */
  setCount(owner: string, count: number, leaseMs: number): Promise<boolean>
  /**
   * The last entry has been left: 0 if the lock no longer belonged to the owner, otherwise 1, and if it can be handed
   * over, one more for each process that was notified.
   */
  release(owner: string): Promise<RedisReply>
  /** Release and acquire for another task of this process at once; 0 when the lock was not the owner's any more. */
  handOver?(owner: string, next: AcquireCall): Promise<number>
  /** A waiter stops waiting: undo what its tries left behind. */
  abandon?(owner: string): Promise<void>
  /** Tells Redis that these owners still wait; gives those that Redis does not know as waiters. */
  keepWaiting?(owners: readonly string[]): Promise<string[]>
}
