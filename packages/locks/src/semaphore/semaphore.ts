import { loadScript, type Redis, type RedisReply, withPublishCommand } from '@firebreak/redis'
import type { LockEngine } from '../engine/lock-engine.ts'
import { keepMember } from '../lease/keep-member.ts'
import { type GuardedFunction, LeasedLock, type LeasedLockParts, type WithLockOptions } from '../lock/leased-lock.ts'
import type { LockHandle } from '../lock/lock-handle.ts'
import { besideName } from '../lock/lock-keys.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import { requireInteger } from '../options.ts'
import { loadTimedScript } from '../time/now-script.ts'
import { loadTokenScript, tokenArgs } from '../token/token-script.ts'

const acquireScript = /* @__PURE__ */ loadTimedScript(new URL('./acquire.lua', import.meta.url), loadTokenScript)
const releaseScript = /* @__PURE__ */ loadTimedScript(new URL('./release.lua', import.meta.url))
const adjustScript = /* @__PURE__ */ loadTimedScript(new URL('./adjust.lua', import.meta.url))
const countScript = /* @__PURE__ */ loadScript(new URL('./count.lua', import.meta.url))

/** Permits of a semaphore in Redis. */
export class PermitProtocol implements LockProtocol {
  readonly kind = 'permit'
  readonly leaseShape = 'set'
  readonly wakes = 'one'
  readonly isShared = true
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly tokenKeys: readonly [string, string]
  readonly channel: string
  readonly #redis: Redis
  readonly #permits: number
  readonly #acquireKeys: readonly string[]
  readonly #addedKey: string

  constructor(redis: Redis, name: string, permits: number) {
    this.#redis = redis
    this.#permits = permits
    this.name = name
    this.id = `permit ${name}`
    this.leaseKey = besideName('firebreak_semaphore', name)
    this.channel = besideName('firebreak_semaphore_channel', name)
    this.tokenKeys = [besideName('firebreak_semaphore_token', name), besideName('firebreak_semaphore_epoch', name)]
    this.#addedKey = besideName('firebreak_semaphore_added', name)
    this.#acquireKeys = [this.leaseKey, ...this.tokenKeys, this.#addedKey]
  }

  acquire(call: AcquireCall): Promise<RedisReply> {
    const args = [call.owner, call.leaseMs, ...tokenArgs(call), this.#permits]
    return this.#redis.run(acquireScript, this.#acquireKeys, args)
  }

  setCount(owner: string, _count: number, leaseMs: number): Promise<boolean> {
    return keepMember(this.#redis, this.leaseKey, owner, leaseMs)
  }

  release(owner: string): Promise<RedisReply> {
    const args = [owner, this.channel]
    return withPublishCommand(this.#redis, (command) =>
      this.#redis.run(releaseScript, [this.leaseKey], [...args, command]),
    )
  }

  async free(): Promise<number> {
    return Number(await this.#redis.run(countScript, [this.leaseKey, this.#addedKey], [this.#permits]))
  }

  /** Adds this many permits, or drains the free ones; returns how many there are now, or were drained. */
  async adjust(change: number | 'drain'): Promise<number> {
    const keys = [this.leaseKey, this.#addedKey]
    const adjusted = await withPublishCommand(this.#redis, (command) =>
      // Sent again it would count twice.
      this.#redis.run(adjustScript, keys, [this.#permits, change, this.channel, command], { atMostOnce: true }),
    )
    return Number(adjusted)
  }
}

/**
 * A maximum number of simultaneous holders; each permit has a lease, so that the permit of a dead holder comes back by
 * itself.
 */
export class Semaphore {
  readonly name: string
  /** As configured for this process; see `addPermits`. */
  readonly permits: number
  readonly #lock: LeasedLock
  readonly #protocol: PermitProtocol

  constructor(
    parts: Omit<LeasedLockParts, 'protocol'> & { readonly engine: LockEngine },
    name: string,
    permits: number,
  ) {
    this.name = name
    this.permits = permits
    this.#protocol = new PermitProtocol(parts.engine.redis, name, permits)
    this.#lock = new LeasedLock({ ...parts, protocol: this.#protocol })
  }

  /** Waits for a permit, however long it takes. */
  acquire(options: { readonly leaseMs?: number; readonly signal?: AbortSignal } = {}): Promise<LockHandle> {
    return this.#lock.lock(options)
  }

  /** Waits for at most `waitMs`; undefined if no permit was free in that time. */
  tryAcquire(waitMs = 0, leaseMs?: number, options: { readonly signal?: AbortSignal } = {}) {
    return this.#lock.tryLock(waitMs, leaseMs, options)
  }

  /** Runs `fn` with a permit and returns it, however it ends. */
  withPermit<T>(fn: GuardedFunction<T>, options: Omit<WithLockOptions, 'owner'> = {}): Promise<T> {
    return this.#lock.withLock(fn, options)
  }

  /** Permits that are currently free. */
  async available(): Promise<number> {
    return this.#protocol.free()
  }

  /**
   * Adds permits to the configured number, for all processes and until they are removed again (with a negative number);
   * returns how many there are now. Permits in use stay with their holders.
   */
  async addPermits(count: number): Promise<number> {
    requireInteger('count', count, Number.MIN_SAFE_INTEGER)
    return this.#protocol.adjust(count)
  }

  /** Removes all free permits, for all processes, until they are added again; returns their number. */
  drainPermits(): Promise<number> {
    return this.#protocol.adjust('drain')
  }
}
