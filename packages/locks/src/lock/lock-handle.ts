import type { LockEngine } from '../engine/lock-engine.ts'
import type { Hold } from '../lease/hold.ts'
import { requireInteger } from '../options.ts'

/** One entry into a lock, returned by `lock()` and unlocked once. */
export class LockHandle implements AsyncDisposable {
  readonly #engine: LockEngine
  readonly #hold: Hold
  #unlocked: Promise<boolean> | undefined

  constructor(engine: LockEngine, hold: Hold) {
    this.#engine = engine
    this.#hold = hold
  }

  get name(): string {
    return this.#hold.protocol.name
  }

  /** Greater than the token of every earlier holder; pass it to whatever the lock guards. */
  get token(): number {
    return this.#hold.token
  }

  /** As stored in Redis: `<instance>:<owner>`. */
  get owner(): string {
    return this.#hold.owner
  }

  /** True while this entry is valid: not unlocked, not lost, and its lease not expired by this process' clock. */
  get isHeld(): boolean {
    return this.#unlocked === undefined && this.#hold.isHeldAt(this.#engine.now())
  }

  /** How often the owner has entered and not left. */
  get holdCount(): number {
    return this.#hold.isHeldAt(this.#engine.now()) ? this.#hold.count : 0
  }

  /** How long the lock is safe without another renewal. */
  get remainingMs(): number {
    const now = this.#engine.now()
    return this.#hold.isHeldAt(now) ? this.#hold.deadline - now : 0
  }

  /** Aborted with a `LockLostError` when the lock is lost. */
  get signal(): AbortSignal {
    return this.#hold.signal
  }

  /**
   * Gives the lease a new length from now on, longer or shorter; a renewed lease keeps that length. False if the lock
   * is no longer ours.
   */
  async extend(leaseMs: number = this.#hold.leaseMs): Promise<boolean> {
    requireInteger('leaseMs', leaseMs, 1)
    if (this.#unlocked !== undefined) return false
    return this.#engine.extend(this.#hold, leaseMs)
  }

  /** Leaves; true if the lock was ours until now, false if it had been lost. Calling it twice is harmless. */
  unlock(): Promise<boolean> {
    this.#unlocked ??= this.#engine.release(this.#hold)
    return this.#unlocked
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock()
  }
}
