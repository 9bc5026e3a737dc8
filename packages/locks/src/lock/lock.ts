import { LeasedLock, type LeasedLockParts } from './leased-lock.ts'
import type { LockProtocol } from './protocol.ts'

/** A lock with one holder, which can be forced open. */
export type ExclusiveProtocol = LockProtocol & { forceRelease(): Promise<boolean> }

/**
 * The reentrant lock: plain (a Java service with Redisson's lock of the same name excludes it and is excluded),
 * spinning, or fair.
 */
export class Lock extends LeasedLock {
  readonly #protocol: ExclusiveProtocol

  constructor(parts: LeasedLockParts & { readonly protocol: ExclusiveProtocol }) {
    super(parts)
    this.#protocol = parts.protocol
  }

  /** True while anybody holds it. */
  async isLocked(): Promise<boolean> {
    return (await this.engine.redis.send(['EXISTS', this.protocol.leaseKey])) === 1
  }

  /** What remains of the current holder's lease; 0 when free. */
  async remainingMs(): Promise<number> {
    const answer = Number(await this.engine.redis.send(['PTTL', this.protocol.leaseKey]))
    if (answer === -1) return Number.POSITIVE_INFINITY
    return Math.max(0, answer)
  }

  /**
   * Frees it, whoever holds it: for operators who know what they are doing. The holder learns of it at its next renewal
   * or unlock.
   */
  forceUnlock(): Promise<boolean> {
    return this.#protocol.forceRelease()
  }
}
