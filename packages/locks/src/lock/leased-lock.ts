import type { AcquireRequest } from '../engine/acquire-request.ts'
import type { LockEngine } from '../engine/lock-engine.ts'
import { LockNotOwnedError, LockTimeoutError } from '../errors.ts'
import type { Hold } from '../lease/hold.ts'
import { requireInteger, requireWait } from '../options.ts'
import type { Owners, ResolvedOwner } from '../owner/owners.ts'
import { endWithUnlock } from './end-with-unlock.ts'
import { LockHandle } from './lock-handle.ts'
import type { LockProtocol } from './protocol.ts'

/** The owner of a call. */
export interface OwnerOptions {
  /**
   * A name for the owner within this process; calls with the same one re-enter.
   * @default the surrounding `withLock` or `asOwner`, or a new owner
   */
  readonly owner?: string
}

/** How a lock is taken. */
export interface LockOptions extends OwnerOptions {
  /**
   * A lease of this length, not renewed unless `renew` says so.
   * @default the lease of `Locks`
   */
  readonly leaseMs?: number
  /**
   * Whether the lease is renewed while the lock is held.
   * @default true, but false with a `leaseMs`
   */
  readonly renew?: boolean
  /** Aborts the wait; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** How a guarded function is run. */
export interface WithLockOptions extends LockOptions {
  /** Waiting longer than this fails with `FB_LOCK_TIMEOUT`. @default Infinity */
  readonly waitMs?: number
  /**
   * What happens if the function succeeds although the lock was lost meanwhile: the call rejects with a `LockLostError`
   * that carries the `result`, or resolves as if nothing had happened.
   * @default 'reject'
   */
  readonly onLost?: 'reject' | 'resolve'
}

/** What a guarded function gets: the handle, whose token it should pass on, and a signal to stop its work. */
export type GuardedFunction<T> = (handle: LockHandle, signal: AbortSignal) => Promise<T> | T

/** How to create a kind of lock. */
export interface LeasedLockParts {
  readonly engine: LockEngine
  readonly owners: Owners
  readonly protocol: LockProtocol
  readonly isSpinning?: boolean
}

/** A lock with a lease: the reentrant lock, and the base of all other kinds. */
export class LeasedLock {
  protected readonly engine: LockEngine
  protected readonly protocol: LockProtocol
  readonly #owners: Owners
  readonly #isSpinning: boolean

  constructor(parts: LeasedLockParts) {
    this.engine = parts.engine
    this.protocol = parts.protocol
    this.#owners = parts.owners
    this.#isSpinning = parts.isSpinning ?? false
  }

  get name(): string {
    return this.protocol.name
  }

  /** Waits for the lock, however long it takes. */
  lock(options: LockOptions = {}): Promise<LockHandle> {
    // Without a time limit, only an abort returns without a lock, and that throws.
    return this.#take(Number.POSITIVE_INFINITY, options, this.#toHandle) as Promise<LockHandle>
  }

  /** Waits for at most `waitMs`; undefined if the lock was not free in that time. */
  async tryLock(
    waitMs = 0,
    leaseMs?: number,
    options: Omit<LockOptions, 'leaseMs'> = {},
  ): Promise<LockHandle | undefined> {
    return this.#take(waitMs, leaseMs === undefined ? options : { ...options, leaseMs }, this.#toHandle)
  }

  /** Runs `fn` under the lock and unlocks, however it ends. */
  async withLock<T>(fn: GuardedFunction<T>, options: WithLockOptions = {}): Promise<T> {
    const { waitMs = Number.POSITIVE_INFINITY, signal } = options
    const hold = await this.takeHold(waitMs, options)
    if (hold === undefined) throw new LockTimeoutError(this.name, waitMs)
    const handle = new LockHandle(this.engine, hold)
    const ending = signal === undefined ? hold.signal : AbortSignal.any([signal, hold.signal])
    return endWithUnlock(
      async () => this.#owners.runInSection(hold, () => fn(handle, ending)),
      () => handle.unlock(),
      () => hold.loss,
      options.onLost,
    )
  }

  /** Leaves one entry of the calling owner, which must be identifiable: named, or that of the surrounding call. */
  async unlock(options: OwnerOptions = {}): Promise<boolean> {
    const hold = this.#currentHold(options)
    if (hold === undefined) throw new LockNotOwnedError(this.name)
    return this.engine.release(hold)
  }

  /** True while the calling owner holds the lock, by this process' clock. */
  isHeld(options: OwnerOptions = {}): boolean {
    return this.#currentHold(options) !== undefined
  }

  /** How often the calling owner has entered and not left. */
  holdCount(options: OwnerOptions = {}): number {
    return this.#currentHold(options)?.count ?? 0
  }

  #currentHold({ owner }: OwnerOptions): Hold | undefined {
    const found = this.#owners.find(this.protocol, owner)
    return found === undefined ? undefined : this.#holdOf(found)
  }

  #holdOf(found: ResolvedOwner): Hold | undefined {
    const { hold } = found
    return hold?.isHeldAt(this.engine.now()) ? hold : this.engine.holdOf(this.protocol, found.owner)
  }

  /** The hold that `lock` and `tryLock` wrap in a handle, for kinds that consist of several locks. */
  async takeHold(waitMs: number, options: LockOptions): Promise<Hold | undefined> {
    return this.#take(waitMs, options, (hold) => hold)
  }

  readonly #toHandle = (hold: Hold): LockHandle => new LockHandle(this.engine, hold)

  #take<R>(waitMs: number, options: LockOptions, use: (hold: Hold) => R): Promise<R | undefined> {
    const { leaseMs, signal } = options
    try {
      if (leaseMs !== undefined) requireInteger('leaseMs', leaseMs, 1)
      requireWait(waitMs)
    } catch (error) {
      return Promise.reject(error)
    }
    const found = this.#owners.resolve(this.protocol, options.owner)
    const request: AcquireRequest = {
      owner: found.owner,
      isKnown: found.isKnown,
      leaseMs: leaseMs ?? this.engine.options.leaseMs,
      isRenewed: options.renew ?? leaseMs === undefined,
      waitMs,
      signal,
      isSpinning: this.#isSpinning,
    }
    if (!found.isKnown) return this.engine.acquire(this.protocol, request, use)
    return this.#enter(found, request).then((hold) => (hold === undefined ? undefined : use(hold)))
  }

  /** Re-enters what a known owner holds, or acquires it. */
  async #enter(found: ResolvedOwner, request: AcquireRequest): Promise<Hold | undefined> {
    // Another call of the same owner may be acquiring the lock: then wait for the outcome, and re-enter.
    for (;;) {
      const before = this.engine.pendingOf(this.protocol, found.owner)
      if (before === undefined) break
      await before.catch(() => {})
    }
    const hold = this.#holdOf(found)
    if (hold === undefined) {
      this.onFirstEntry(found.owner)
      return this.engine.acquireAlone(this.protocol, request)
    }
    await this.engine.reenter(hold)
    return hold
  }

  /** A known owner is about to wait for its first entry; a kind may refuse. */
  protected onFirstEntry(_owner: string): void {}
}
