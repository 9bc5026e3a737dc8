/** What kind of thing is held. */
export type LockKind = 'lock' | 'fair' | 'read' | 'write' | 'permit'

/** A try's outcome: taken, or busy for at most so long (Infinity: until told), or a re-entry that came too late. */
export type Attempt = { readonly token: number } | { readonly waitMs: number } | 'lost'

/** A release's outcome; `handed` carries the next owner's token. */
export type Release = 'released' | 'not-held' | { readonly handed: number }

/** One try to take. */
export interface AcquireCall {
  readonly owner: string
  /** The hold count after this call: 1 is a first acquisition, more a re-entry. */
  readonly count: number
  readonly leaseMs: number
  /** The highest token that this client has seen. */
  readonly seenToken: number
  /** Whether the owner will wait when it is busy (a fair lock queues it then). */
  readonly willWait: boolean
}

/** One hold given back. */
export interface ReleaseCall {
  readonly owner: string
  /** The hold count after this call. */
  readonly count: number
  readonly token: number
  /** Hand it to this owner of the same process instead of freeing it. */
  readonly next?: { readonly owner: string; readonly leaseMs: number; readonly seenToken: number }
}

/**
 * What one kind of lock says to Redis; all the rest (owners, waiting, renewal, loss, metrics) is the engine's.
 * Every call may be sent twice without harm: a client may send again what it got no reply for.
 */
export interface LockProtocol {
  readonly kind: LockKind
  readonly name: string
  /** The key that carries the lease. */
  readonly leaseKey: string
  /** How the lease is kept: with the whole key (`hash`), or for each owner (`set`). */
  readonly leaseShape: 'hash' | 'set'
  readonly channel: string
  /** `one`: a message wakes one waiter of a process. `owner`: it names the waiter that it wakes. */
  readonly wakes: 'one' | 'owner'
  /** Several owners may hold it at once, so that one success is a reason for the next waiter to try. */
  readonly isShared: boolean
  /** A release can hand over to a task of the same process. */
  readonly canHandOver: boolean
  acquire(call: AcquireCall): Promise<Attempt>
  release(call: ReleaseCall): Promise<Release>
  /** A waiter stops waiting: undo what its tries left behind. */
  abandon?(owner: string): Promise<void>
  /** Tells Redis that these owners still wait; gives those that Redis does not know as waiters. */
  keepWaiting?(owners: readonly string[]): Promise<string[]>
}
