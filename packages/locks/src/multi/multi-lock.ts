import { InvalidOptionError } from '@firebreak/core'
import type { LockEngine } from '../engine/lock-engine.ts'
import { LockTimeoutError } from '../errors.ts'
import type { Hold } from '../lease/hold.ts'
import { endWithUnlock } from '../lock/end-with-unlock.ts'
import type { LeasedLock, LockOptions, WithLockOptions } from '../lock/leased-lock.ts'
import { requireInteger, requireWait } from '../options.ts'
import type { Owners } from '../owner/owners.ts'

/** All locks of a multi-lock, held together. */
export class MultiLockHandle implements AsyncDisposable {
  readonly #engine: LockEngine
  readonly #holds: readonly Hold[]
  #unlocked: Promise<boolean> | undefined

  constructor(engine: LockEngine, holds: readonly Hold[]) {
    this.#engine = engine
    this.#holds = holds
  }

  /** The fencing token of each lock by its name. */
  get tokens(): ReadonlyMap<string, number> {
    return new Map(this.#holds.map(({ protocol, token }) => [protocol.name, token]))
  }

  /** True while every lock is held. */
  get isHeld(): boolean {
    const now = this.#engine.now()
    return this.#unlocked === undefined && this.#holds.every((hold) => hold.isHeldAt(now))
  }

  /** Aborted when one of the locks is lost. */
  get signal(): AbortSignal {
    return AbortSignal.any(this.#holds.map(({ signal }) => signal))
  }

  /** Gives all leases a new length from now on; false if one of the locks is no longer ours. */
  async extend(leaseMs: number): Promise<boolean> {
    requireInteger('leaseMs', leaseMs, 1)
    if (this.#unlocked !== undefined) return false
    const extended = await Promise.all(this.#holds.map((hold) => this.#engine.extend(hold, leaseMs)))
    return extended.every(Boolean)
  }

  /** Releases all; true if all were ours until now. */
  unlock(): Promise<boolean> {
    this.#unlocked ??= releaseAll(this.#engine, this.#holds)
    return this.#unlocked
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock()
  }
}

async function releaseAll(engine: LockEngine, holds: Iterable<Hold>): Promise<boolean> {
  const results = await Promise.allSettled([...holds].map((hold) => engine.release(hold)))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return results.every((result) => result.status === 'fulfilled' && result.value)
}

/**
 * Several locks as one. It never waits for one lock while holding another: it waits for the first busy one holding
 * nothing, then tries the others, and if one of those is busy it releases everything and waits for that one. So it
 * cannot be part of a deadlock, whatever the order in which anyone names or nests the same locks.
 */
export class MultiLock {
  readonly names: readonly string[]
  readonly #engine: LockEngine
  readonly #owners: Owners
  readonly #locks: readonly LeasedLock[]

  constructor(engine: LockEngine, owners: Owners, locks: readonly LeasedLock[]) {
    if (locks.length === 0) throw new InvalidOptionError('names', [], 'a list of at least one name')
    this.names = locks.map(({ name }) => name)
    this.#engine = engine
    this.#owners = owners
    this.#locks = locks
  }

  /** Waits until all are held. */
  async lock(options: LockOptions = {}): Promise<MultiLockHandle> {
    return new MultiLockHandle(this.#engine, (await this.#takeAll(Number.POSITIVE_INFINITY, options))!)
  }

  /** Waits for at most `waitMs`; undefined if not all could be acquired in that time. */
  async tryLock(waitMs = 0, leaseMs?: number, options: Omit<LockOptions, 'leaseMs'> = {}) {
    const holds = await this.#takeAll(waitMs, leaseMs === undefined ? options : { ...options, leaseMs })
    return holds === undefined ? undefined : new MultiLockHandle(this.#engine, holds)
  }

  /** Runs `fn` under all locks and unlocks, however it ends. */
  async withLock<T>(
    fn: (handle: MultiLockHandle, signal: AbortSignal) => Promise<T> | T,
    options: WithLockOptions = {},
  ): Promise<T> {
    const { waitMs = Number.POSITIVE_INFINITY, signal } = options
    const holds = await this.#takeAll(waitMs, options)
    if (holds === undefined) throw new LockTimeoutError(this.names.join(', '), waitMs)
    const handle = new MultiLockHandle(this.#engine, holds)
    const ending = signal === undefined ? handle.signal : AbortSignal.any([signal, handle.signal])
    const guarded = holds.reduce<() => Promise<T> | T>(
      (inner, hold) => () => this.#owners.runInSection(hold, inner),
      () => fn(handle, ending),
    )
    return endWithUnlock(
      async () => guarded(),
      () => handle.unlock(),
      () => holds.find(({ loss }) => loss !== undefined)?.loss,
      options.onLost,
    )
  }

  async #takeAll(waitMs: number, options: LockOptions): Promise<Hold[] | undefined> {
    requireWait(waitMs)
    const deadline = this.#engine.now() + waitMs
    let first = 0
    for (;;) {
      const leftMs = waitMs === 0 ? 0 : Math.max(0, deadline - this.#engine.now())
      const held = new Map<number, Hold>()
      const hold = await this.#locks[first]!.takeHold(leftMs, options)
      if (hold === undefined) return undefined
      held.set(first, hold)
      const busy = await this.#takeOthers(held, options)
      if (busy === undefined) return this.#locks.map((_, index) => held.get(index)!)
      await releaseAll(this.#engine, held.values())
      if (waitMs === 0 || this.#engine.now() >= deadline) return undefined
      first = busy
    }
  }

  /** Tries the others without waiting; returns the index of a busy one. */
  async #takeOthers(held: Map<number, Hold>, options: LockOptions): Promise<number | undefined> {
    try {
      for (const [index, lock] of this.#locks.entries()) {
        if (held.has(index)) continue
        const hold = await lock.takeHold(0, options)
        if (hold === undefined) return index
        held.set(index, hold)
      }
      return undefined
    } catch (error) {
      await releaseAll(this.#engine, held.values()).catch(() => {})
      throw error
    }
  }
}
