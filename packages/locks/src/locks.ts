import { asListener } from '@firebreak/core'
import { type RedisClient, toRedis } from '@firebreak/redis'
import { LockEngine } from './engine/lock-engine.ts'
import type { LostLock } from './engine/lost-lock.ts'
import { FairProtocol } from './fair/fair-protocol.ts'
import { CountdownLatch } from './latch/countdown-latch.ts'
import type { GuardedFunction, WithLockOptions } from './lock/leased-lock.ts'
import { type ExclusiveProtocol, Lock } from './lock/lock.ts'
import { requireName } from './lock/lock-keys.ts'
import { ReentrantProtocol } from './lock/reentrant-protocol.ts'
import type { LockMetricsSnapshot } from './metrics/lock-metrics.ts'
import { type LocksSnapshot, takeSnapshot } from './metrics/locks-snapshot.ts'
import { MultiLock } from './multi/multi-lock.ts'
import { type LocksOptions, requireInteger, resolveLocksOptions } from './options.ts'
import { Owners } from './owner/owners.ts'
import { ReadProtocol } from './read-write/read-protocol.ts'
import { ReadWriteLock } from './read-write/read-write-lock.ts'
import { WriteProtocol } from './read-write/write-protocol.ts'
import { Semaphore } from './semaphore/semaphore.ts'

/** The locks of one process on one Redis: create it once, keep it, and get locks from it by name. */
export class Locks {
  readonly #engine: LockEngine
  readonly #owners: Owners

  constructor(client: RedisClient, options: LocksOptions = {}) {
    const resolved = resolveLocksOptions(options)
    this.#engine = new LockEngine(toRedis(client), resolved)
    this.#owners = new Owners(resolved.instanceId)
  }

  /** The part before the colon in the names of this process' owners. */
  get instanceId(): string {
    return this.#engine.options.instanceId
  }

  /** The reentrant lock of this name. */
  getLock(name: string): Lock {
    return this.#lock(name, false)
  }

  /** The same lock, waited for by polling with growing pauses: for very many names that are rarely contended. */
  getSpinLock(name: string): Lock {
    return this.#lock(name, true)
  }

  /** A lock that is given to its waiters in order of arrival, across processes. */
  getFairLock(name: string): Lock {
    requireName(name, this.#engine.redis.topology)
    return this.#exclusive(new FairProtocol(this.#engine.redis, name, this.#engine.options))
  }

  /** Many readers or one writer. */
  getReadWriteLock(name: string): ReadWriteLock {
    const { redis, options } = this.#engine
    requireName(name, redis.topology)
    const parts = { engine: this.#engine, owners: this.#owners }
    return new ReadWriteLock(parts, new ReadProtocol(redis, name), new WriteProtocol(redis, name, options.waiterTtlMs))
  }

  /** The locks of these names as one, without deadlocks whatever the order of names. */
  getMultiLock(names: readonly string[]): MultiLock {
    const locks = [...new Set(names)].map((name) => this.getLock(name))
    return new MultiLock(this.#engine, this.#owners, locks)
  }

  /** At most `permits` holders at once; everyone who uses this name should pass the same number. */
  getSemaphore(name: string, permits: number): Semaphore {
    requireName(name, this.#engine.redis.topology)
    requireInteger('permits', permits, 1)
    return new Semaphore({ engine: this.#engine, owners: this.#owners }, name, permits)
  }

  /** A count that tasks wait to reach zero. */
  getCountdownLatch(name: string): CountdownLatch {
    requireName(name, this.#engine.redis.topology)
    return new CountdownLatch(this.#engine, name)
  }

  /** Runs `fn` under the lock of this name and unlocks, however it ends. */
  withLock<T>(name: string, fn: GuardedFunction<T>, options?: WithLockOptions): Promise<T> {
    return this.getLock(name).withLock(fn, options)
  }

  /** Runs `fn` as one owner: all locks that it takes without naming an owner belong to it and can be re-entered. */
  asOwner<T>(fn: () => T): T {
    return this.#owners.runAsOwner(fn)
  }

  /** Calls back whenever a lock of this process is lost; returns a function that unsubscribes. */
  onLost(listener: (lost: LostLock) => void): () => void {
    const told = asListener(listener)
    this.#engine.events.on('lost', told)
    return () => this.#engine.events.off('lost', told)
  }

  /**
   * Forces one hold of this process open on a user's request; its holder learns that it is lost (`taken`). False if the
   * process no longer holds the lock under this token.
   */
  async giveUp(kind: 'lock' | 'fair', token: number): Promise<boolean> {
    const held = this.snapshot().held.find((row) => row.kind === kind && row.token === token)
    if (held === undefined) return false
    return (kind === 'fair' ? this.getFairLock(held.name) : this.getLock(held.name)).forceUnlock()
  }

  metrics(): LockMetricsSnapshot {
    return this.#engine.metrics.snapshot(this.#engine.watchdog)
  }

  /** What this process currently holds and waits for. */
  snapshot(): LocksSnapshot {
    return takeSnapshot(this.#engine)
  }

  /** Ends waiting (`FB_LOCKS_CLOSED`) and renewal; held locks expire with their leases. */
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
