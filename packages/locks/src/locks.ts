import { type RedisClient, toRedis } from '@firebreak/redis'
import { LockEngine, type LostLock } from './engine/lock-engine.ts'
import { FairProtocol } from './fair/fair-protocol.ts'
import type { GuardedFunction, WithLockOptions } from './lock/leased-lock.ts'
import { type ExclusiveProtocol, Lock } from './lock/lock.ts'
import { requireName } from './lock/lock-keys.ts'
import { ReentrantProtocol } from './lock/reentrant-protocol.ts'
import type { LockMetricsSnapshot } from './metrics/lock-metrics.ts'
import { type LocksSnapshot, takeSnapshot } from './metrics/locks-snapshot.ts'
import { type LocksOptions, resolveLocksOptions } from './options.ts'
import { Owners } from './owner/owners.ts'

/** The locks of one process over one Redis: make one, keep it, ask it for locks by name. */
export class Locks {
  readonly #engine: LockEngine
  readonly #owners: Owners

  constructor(client: RedisClient, options: LocksOptions = {}) {
    const resolved = resolveLocksOptions(options)
    this.#engine = new LockEngine(toRedis(client), resolved)
    this.#owners = new Owners(resolved.instanceId)
  }

  /** What stands before the colon of this process' owners. */
  get instanceId(): string {
    return this.#engine.options.instanceId
  }

  /** The reentrant lock of this name. */
  getLock(name: string): Lock {
    return this.#lock(name, false)
  }

  /** The same lock, waited for by asking with growing pauses: for very many names that are seldom contended. */
  getSpinLock(name: string): Lock {
    return this.#lock(name, true)
  }

  /** A lock that is given to its waiters in the order in which they came, across processes. */
  getFairLock(name: string): Lock {
    requireName(name, this.#engine.redis.topology)
    return this.#exclusive(new FairProtocol(this.#engine.redis, name, this.#engine.options))
  }

  /** Runs `fn` under the lock of this name and unlocks, however it ends. */
  withLock<T>(name: string, fn: GuardedFunction<T>, options?: WithLockOptions): Promise<T> {
    return this.getLock(name).withLock(fn, options)
  }

  /** Runs `fn` as one owner: all locks that it takes without a name for the owner are its own, and re-entered. */
  asOwner<T>(fn: () => T): T {
    return this.#owners.runAsOwner(fn)
  }

  /** Calls back whenever a lock of this process is lost; returns a function that ends this. */
  onLost(listener: (lost: LostLock) => void): () => void {
    this.#engine.events.on('lost', listener)
    return () => this.#engine.events.off('lost', listener)
  }

  metrics(): LockMetricsSnapshot {
    return this.#engine.metrics.snapshot(this.#engine.watchdog)
  }

  /** What this process holds and waits for at this moment. */
  snapshot(): LocksSnapshot {
    return takeSnapshot(this.#engine)
  }

  /** Ends waiting (`FB_LOCKS_CLOSED`) and renewal; what is still held runs out with its lease. */
  close(): Promise<void> {
    return this.#engine.close()
  }

  #lock(name: string, isSpinning: boolean): Lock {
    requireName(name, this.#engine.redis.topology)
    return this.#exclusive(new ReentrantProtocol(this.#engine.redis, name), isSpinning)
  }

  #exclusive(protocol: ExclusiveProtocol, isSpinning = false): Lock {
    return new Lock({ engine: this.#engine, owners: this.#owners, protocol, isSpinning })
  }
}
