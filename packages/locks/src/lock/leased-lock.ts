import type { AcquireRequest, LockEngine } from '../engine/lock-engine.ts'
import { isTransient } from '../engine/transient.ts'
import { LockNotOwnedError, LockTimeoutError } from '../errors.ts'
import type { Hold } from '../lease/hold.ts'
import { requireInteger } from '../options.ts'
import type { Owners } from '../owner/owners.ts'
import { LockHandle } from './lock-handle.ts'
import type { LockProtocol } from './protocol.ts'

/** Who asks. */
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
   * A fixed lease that is not renewed.
   * @default the lease of `Locks`, renewed while the lock is held
   */
  readonly leaseMs?: number
  /** Ends the waiting; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** How a guarded function is run. */
export interface WithLockOptions extends LockOptions {
  /** After so long without the lock: `FB_LOCK_TIMEOUT`. @default Infinity */
  readonly waitMs?: number
}

/** What a guarded function is given: the handle, whose token it should pass on, and a signal that ends its work. */
export type GuardedFunction<T> = (handle: LockHandle, signal: AbortSignal) => Promise<T> | T

/** How a kind of lock is made. */
export interface LeasedLockParts {
  readonly engine: LockEngine
  readonly owners: Owners
  readonly protocol: LockProtocol
  readonly isSpinning?: boolean
}

/** A lock with a lease: the reentrant one, and what all other kinds are built on. */
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
  async lock(options: LockOptions = {}): Promise<LockHandle> {
    // Without an end to the waiting, only an abort comes back without a lock, and that throws.
    return (await this.#take(Number.POSITIVE_INFINITY, options))!
  }

  /** Waits for at most `waitMs`; undefined when the lock was not free in that time. */
  tryLock(waitMs = 0, leaseMs?: number, options: Omit<LockOptions, 'leaseMs'> = {}): Promise<LockHandle | undefined> {
    if (!(waitMs >= 0)) requireInteger('waitMs', waitMs, 0)
    return this.#take(waitMs, leaseMs === undefined ? options : { ...options, leaseMs })
  }

  /** Runs `fn` under the lock and unlocks, however it ends. */
  async withLock<T>(fn: GuardedFunction<T>, options: WithLockOptions = {}): Promise<T> {
    const { waitMs = Number.POSITIVE_INFINITY, signal } = options
    const hold = await this.#takeHold(waitMs, options)
    if (hold === undefined) throw new LockTimeoutError(this.name, waitMs)
    const handle = new LockHandle(this.engine, hold)
    try {
      const ending = signal === undefined ? hold.signal : AbortSignal.any([signal, hold.signal])
      return await this.#owners.runInSection(hold, () => fn(handle, ending))
    } finally {
      // Redis out of reach is no reason to hide what `fn` gave: the lease ends the lock.
      await handle.unlock().catch((error) => {
        if (!isTransient(error)) throw error
      })
    }
  }

  /** Leaves one entry of the calling owner, which must be one that can be told: named, or around the call. */
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
    return found === undefined ? undefined : this.engine.holdOf(this.protocol, found)
  }

  async #take(waitMs: number, options: LockOptions): Promise<LockHandle | undefined> {
    const hold = await this.#takeHold(waitMs, options)
    return hold === undefined ? undefined : new LockHandle(this.engine, hold)
  }

  async #takeHold(waitMs: number, options: LockOptions): Promise<Hold | undefined> {
    if (options.leaseMs !== undefined) requireInteger('leaseMs', options.leaseMs, 1)
    const { owner, isFresh } = this.#owners.resolve(this.protocol, options.owner)
    const request: AcquireRequest = {
      owner,
      leaseMs: options.leaseMs ?? this.engine.options.leaseMs,
      isRenewed: options.leaseMs === undefined,
      waitMs,
      signal: options.signal,
      isSpinning: this.#isSpinning,
    }
    if (isFresh) return this.engine.acquire(this.protocol, request)
    // Someone of the same owner may be on the way to the lock: then wait for the outcome, and re-enter.
    const { protocol } = this
    for (;;) {
      const before = this.engine.pendingOf(protocol, owner)
      if (before === undefined) break
      await before.catch(() => {})
    }
    const hold = this.engine.holdOf(protocol, owner)
    if (hold === undefined) {
      this.onFirstEntry(owner)
      return this.engine.acquireAlone(protocol, request)
    }
    await this.engine.reenter(hold)
    return hold
  }

  /** A known owner is about to wait for its first entry; a kind may refuse. */
  protected onFirstEntry(_owner: string): void {}
}
